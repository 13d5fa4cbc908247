"""What a docker sandbox sees of changes, either way: by the layers on this machine, or by what the engine says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from seatrial.errors import SandboxFault
from seatrial.sandboxes.docker.environment import DockerEnvironment
from seatrial.sandboxes.docker.leftovers import Leftovers
from seatrial.sandboxes.facts import SandboxFacts
from tests.engine import Engine
from tests.integration.engine.test_docker import Bench, IsLocal, bench, either_way, elsewhere
from tests.waiting import LIMIT_SEC

__all__ = ["bench"]

pytestmark = pytest.mark.engine

Graded = Callable[[str], Awaitable[SandboxFacts]]
SITE = "d=/usr/lib/python3/dist-packages; mkdir -p $d"


@pytest.fixture
async def graded(bench: Bench, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Graded]:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test.sh").write_text("true\n")
    started: list[DockerEnvironment] = []

    async def graded(command: str) -> SandboxFacts:
        sandbox = bench.sandbox(is_local=request.getfixturevalue("is_local"))
        started.append(sandbox)
        await sandbox.start(force_build=False)
        assert (await sandbox.exec(command)).return_code == 0
        await sandbox.upload_dir(tmp_path / "tests", "/tests")
        return sandbox.facts

    yield graded
    for sandbox in started:
        await sandbox.stop(delete=True)


@either_way
async def test_tampering_is_flagged(graded: Graded, is_local: IsLocal) -> None:
    site = f"{SITE}; echo 'import os' > $d/sitecustomize.py"
    facts = await graded(f"ln -s /bin/true /usr/local/bin/grep; {site}; echo true >> /etc/profile")
    assert facts.suspicions == ("suspect_path", "suspect_python", "suspect_shell")
    assert not any("integrity" in line for line in facts.not_applied)


@either_way
async def test_honest_changes_are_not_flagged(graded: Graded, is_local: IsLocal) -> None:
    facts = await graded(
        f"touch /usr/bin/grep; ln -s /bin/true /usr/local/bin/mine; {SITE}; echo /src > $d/editable.pth"
    )
    assert facts.suspicions == ()


@either_way
async def test_nothing_was_changed(graded: Graded, is_local: IsLocal) -> None:
    assert (await graded("true")).suspicions == ()


async def test_looking_leaves_no_container(bench: Bench, container_engine: Engine, tmp_path: Path) -> None:
    """The image's own files come from a second container."""
    (tmp_path / "test.sh").write_text("true\n")
    sandbox = bench.sandbox(is_local=elsewhere)
    await sandbox.start(force_build=False)
    try:
        await sandbox.exec("echo true >> /etc/profile")
        await sandbox.upload_dir(tmp_path, "/tests")
        assert sandbox.facts.suspicions == ("suspect_shell",)
        async with Leftovers.at(container_engine.host) as leftovers:
            own = [found.name for found in await leftovers.containers() if found.record.owner.install == bench.install]
        assert len(own) == 2 and not any("original" in name for name in own)
    finally:
        await sandbox.stop(delete=True)


@either_way
async def test_answer_after_the_timeout_does_not_come(bench: Bench, is_local: IsLocal) -> None:
    """A late command is held still before anything else is done about it."""
    sandbox = bench.sandbox(is_local=is_local)
    await sandbox.start(force_build=False)
    try:
        with pytest.raises(RuntimeError, match="timed out"):
            await sandbox.exec("until [ -e /app/go ]; do :; done; echo late > /app/answer; sleep 600", timeout_sec=1)
        assert (await sandbox.exec("touch /app/go; sleep 2; cat /app/answer")).return_code == 1
        await sandbox.exec("sleep 0.3; echo in time > /app/answer", timeout_sec=int(LIMIT_SEC))
        assert (await sandbox.exec("cat /app/answer")).stdout == "in time\n"
    finally:
        await sandbox.stop(delete=True)


async def test_broken_sandbox_is_said_by_the_engine(bench: Bench) -> None:
    sandbox = bench.sandbox(is_local=elsewhere)
    await sandbox.start(force_build=False)
    try:
        assert (await sandbox.exec("no-such-command")).return_code == 127
        with pytest.raises(SandboxFault, match="broken: /bin/sh"):
            await sandbox.exec("rm /bin; printf '#!/bin/sh\n' > /app/x; chmod +x /app/x; /app/x; exit 126")
    finally:
        await sandbox.stop(delete=True)
