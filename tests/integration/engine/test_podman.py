"""Podman instead of Docker behind the same API: what it does in another way, and that a trial does not notice.

The whole contract suite runs against it too, where somebody points ``DOCKER_HOST`` to its socket.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.sandboxes.docker.client import EngineClient
from seatrial.sandboxes.docker.environment import DockerEnvironment
from seatrial.sandboxes.docker.local_container import runs_here
from seatrial.sandboxes.docker.probe import probe
from seatrial.sandboxes.options import SandboxOptions
from tests.command_line import SAMPLES, CommandLine
from tests.contracts.sandbox.kinds import KINDS, Place, Wish
from tests.engine import Engine
from tests.podman import podman_service
from tests.waiting import LIMIT_SEC

pytestmark = pytest.mark.engine

OFFLINE = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
EAT = "perl -e 'my $x = \"x\" x (400 * 1024 * 1024)'"


def elsewhere(host: str) -> bool:
    """Every engine is on another machine."""
    return False


@pytest.fixture(scope="module")
def podman_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with podman_service(tmp_path_factory.mktemp("podman") / "service") as engine:
        yield engine


@asynccontextmanager
async def _running(directory: Path, cache: Path, engine: Engine, **given: Any) -> AsyncIterator[DockerEnvironment]:
    kind, place = KINDS["docker"], Place(directory, cache, engine)
    wish = Wish(memory_mb=128, network=OFFLINE)
    sandbox = DockerEnvironment(**kind.arguments(place, wish), **kind.own_arguments(place, wish), **given)
    try:
        await sandbox.start(force_build=False)
        yield sandbox
    finally:
        await sandbox.stop(delete=True)


async def _containers(engine: Engine) -> list[str]:
    async with EngineClient(engine.host) as client:
        return [entry["Names"][0] for entry in await client.get("/containers/json", all=True)]


async def _graded(sandbox: DockerEnvironment, directory: Path) -> str:
    tests = directory / "tests"
    tests.mkdir()
    (tests / "test.sh").write_text("#!/bin/bash\ntest -e /app/done && echo 1 > /logs/verifier/reward.txt\n")
    await sandbox.exec("touch /app/done; mkdir -p /logs/verifier")
    await sandbox.upload_dir(source_dir=tests, target_dir="/tests")
    await sandbox.exec("bash /tests/test.sh")
    await sandbox.download_dir(source_dir="/logs/verifier", target_dir=directory / "found")
    return (directory / "found" / "reward.txt").read_text()


async def test_doctor_knows_it(podman_engine: Engine, image_cache: Path) -> None:
    findings = await probe(SandboxOptions(cache=image_cache, docker_host=podman_engine.host))
    assert [finding.name for finding in findings if not finding.ok] == []


async def test_oracle_trial_passes_and_leaves_nothing(cli: CommandLine, podman_engine: Engine) -> None:
    cli("run", SAMPLES / "answer-file", "-a", "oracle", "-e", "docker", DOCKER_HOST=podman_engine.host)
    assert cli.count(outcome="passed") == 1
    assert await _containers(podman_engine) == []


@pytest.mark.parametrize("is_local", [runs_here, elsewhere], ids=["entered", "through the engine"])
async def test_sandbox_grades_and_tells_a_memory_kill(
    tmp_path: Path, image_cache: Path, podman_engine: Engine, is_local: Any
) -> None:
    async with _running(tmp_path, image_cache, podman_engine, is_local=is_local) as sandbox:
        with pytest.raises(RuntimeError, match="timed out"):
            await sandbox.exec("sleep 600", timeout_sec=1)
        assert (await sandbox.exec("exit 137")).return_code == 137
        assert not sandbox.facts.memory_killed
        assert (await sandbox.exec(EAT, timeout_sec=int(LIMIT_SEC))).return_code == 137
        assert sandbox.facts.memory_killed
        assert await _graded(sandbox, tmp_path) == "1\n"
    assert await _containers(podman_engine) == []


async def test_user_namespaces_are_closed_where_they_can_be(
    tmp_path: Path, image_cache: Path, podman_engine: Engine
) -> None:
    """Podman's own profile leaves them open, and from another machine it cannot be given a better one."""
    command = "unshare --user true"
    async with _running(tmp_path, image_cache, podman_engine) as near:
        assert (await near.exec(command)).return_code != 0
        assert any("stricter than Docker's" in line for line in near.facts.protections)
        assert not any("seccomp" in line for line in near.facts.not_applied)
    async with _running(tmp_path, image_cache, podman_engine, is_local=elsewhere) as far:
        assert (await far.exec(command)).return_code == 0
        assert any("user namespaces" in line for line in far.facts.not_applied)
