"""What ``latest`` meant to a job's first try holds for all others, whichever worker runs them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from seatrial.agents.kits.fitting import AgentKits, FittedKit
from seatrial.agents.kits.kit import Kit
from seatrial.agents.kits.recipes import RECIPES, wanted_version
from seatrial.agents.kits.shelf import KitShelf, ReadyKit
from seatrial.domain.job import JobSpec
from seatrial.errors import InvalidInput, SetupProblem
from seatrial.testing.memory_store import MemoryStore

NOW = datetime(2026, 5, 1, tzinfo=UTC)


class Shelf(KitShelf):
    """Has kits of every version, and another latest one every time."""

    def __init__(self, directory: Path, content: str = "1") -> None:
        super().__init__(directory, {})
        self.content = content
        self.latest = 0

    async def get(self, agent: str, version: str | None = None) -> ReadyKit:
        if version is None:
            self.latest += 1
        exact = version or f"1.0.{self.latest}"
        about = {"agent": agent, "version": exact, "arch": "x", "libc": "y", "program": "z", "size_bytes": 1}
        kit = Kit(digest=f"sha256:{self.content}-{exact}", made_at=NOW, **about)
        return ReadyKit(kit, self._directory / f"{agent}-{exact}" / "tree")


async def fitted(kits: AgentKits, job: int, version: str | None = None) -> FittedKit:
    async with kits.fit("codex", version, job) as kit:
        assert isinstance(kit, FittedKit)
        return kit


@pytest.fixture
async def store() -> MemoryStore:
    store = MemoryStore()
    for _ in range(2):
        await store.jobs.create(JobSpec(tasks=(), agents=()), (), NOW)
    return store


async def test_all_tries_of_a_job_have_the_version_of_its_first(tmp_path: Path, store: MemoryStore) -> None:
    one, other = (AgentKits(Shelf(tmp_path), store.jobs.record_version) for _ in range(2))
    first = await fitted(one, 1)
    assert first.kit.version == "1.0.1" and first.notes == []
    for kits in (one, other, one):
        assert (await fitted(kits, 1)).kit.version == "1.0.1"
    assert (await fitted(one, 2)).kit.version == "1.0.2", "another job has its own"
    assert (await fitted(one, 1, "0.9")).kit.version == "0.9", "a version that is named is taken"


async def test_another_content_of_the_same_version_is_said(tmp_path: Path, store: MemoryStore) -> None:
    await fitted(AgentKits(Shelf(tmp_path), store.jobs.record_version), 1)
    elsewhere = await fitted(AgentKits(Shelf(tmp_path, "2"), store.jobs.record_version), 1)
    assert elsewhere.notes == ["agent kit: this worker's has another content than the job's first, sha256:1-1.0.1"]


async def test_an_agent_without_a_kit_is_installed_and_a_failed_build_is_said(tmp_path: Path) -> None:
    class Broken(Shelf):
        async def get(self, agent: str, version: str | None = None) -> ReadyKit:
            raise SetupProblem("no registry")

    kits = AgentKits(Broken(tmp_path))
    for agent, expected in (("goose", ""), ("codex", "agent kit: no registry")):
        async with kits.fit(agent, None, 1) as why:
            assert why == expected


@pytest.mark.parametrize("version", ["1.0 || 2", "file:/etc", "../x", "npm:evil@1", "1.0; id", "-g", "", "git+ssh://x"])
def test_only_a_version_is_a_version(version: str) -> None:
    recipe = RECIPES["codex"]
    if version == "":
        assert wanted_version(recipe, version) == "latest"
        return
    with pytest.raises(InvalidInput):
        wanted_version(recipe, version)


@pytest.mark.parametrize("version", ["2.4.6", "0.166.0-alpha.3", "1.0.0+build", "latest"])
def test_versions_are_versions(version: str) -> None:
    assert wanted_version(RECIPES["codex"], version) == version
