"""Faults 21 and 28 on each sandbox of ours: what one sandbox does to itself is noticed, said and ended."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from seatrial.errors import SandboxFault
from tests.trials import Workplace
from tests.workplace_fixture import Make

BOMB = "bomb() { bomb | bomb & }; bomb; sleep 60"
HOG = "perl -e 'my @x; push @x, \"x\" x (64 * 1024 * 1024) while 1'"
FILL = "i=0; while true; do dd if=/dev/zero of=/fill$i bs=1M count=16 status=none; i=$((i+1)); sleep 0.03; done"


async def test_ten_gigabytes_are_a_memory_kill(make: Make) -> None:
    sandbox = await make()
    assert (await sandbox.exec("exit 137")).return_code == 137
    assert not sandbox.facts.memory_killed
    result = await sandbox.exec("perl -e 'my $x = \"x\" x (10 * 1024 ** 3)'; echo $?")
    assert "137" in (result.stdout or "") or result.return_code == 137 or "Out of memory" in (result.stderr or "")
    assert (await sandbox.exec(HOG)).return_code == 137
    assert sandbox.facts.memory_killed
    assert (await sandbox.exec("echo usable")).stdout == "usable\n"


async def test_fork_bomb_ends_with_its_command(make: Make) -> None:
    sandbox = await make(options={"default_pids": 128})
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec(BOMB, timeout_sec=2)
    tests = sandbox.trial_paths.trial_dir / "tests"
    tests.mkdir()
    (tests / "test.sh").write_text("echo graded\n")
    await sandbox.upload_dir(tests, "/tests")
    assert (await sandbox.exec("bash /tests/test.sh")).stdout == "graded\n"


async def test_disk_fill_is_stopped_and_said(make: Make, workplace: Workplace) -> None:
    sandbox = await make(storage_mb=600)
    assert (await sandbox.exec("dd if=/dev/zero of=/fine bs=1M count=100 status=none")).return_code == 0
    try:
        result = await sandbox.exec(FILL.replace("; i=$", " || exit 28; i=$"), timeout_sec=120)
    except SandboxFault as fault:  # it was faster than the watch: the sandbox is gone, and its files with it
        assert "600 MB" in str(fault)
    else:
        assert result.return_code == (137 if workplace.engine else 28)
        assert (await sandbox.exec("echo usable")).stdout == "usable\n"
    assert sandbox.facts.limits["storage_exceeded_mb"] > 598


async def test_sandbox_that_endangers_the_disk_is_removed(make: Make, workplace: Workplace) -> None:
    sandbox = await make(storage_mb=200)
    if workplace.engine is None:  # a disk of its own ends at the limit
        assert (await sandbox.exec("fallocate -l 2G /huge && sleep 600", timeout_sec=300)).return_code == 1
        return
    with pytest.raises(SandboxFault, match="200 MB"):
        await sandbox.exec("fallocate -l 2G /huge && sleep 600", timeout_sec=300)
    with pytest.raises(SandboxFault, match="200 MB"):
        await sandbox.exec("echo not here any more")
    assert sandbox.facts.limits["storage_exceeded_mb"] >= 2000


async def test_hundred_megabytes_in_one_line(make: Make) -> None:
    sandbox = await make()
    await sandbox.exec("head -c 20M /dev/zero")  # whatever is allocated once, is allocated now
    before, peak = _resident(), 0
    running = asyncio.create_task(sandbox.exec("head -c 100M /dev/zero | tr '\\0' x; echo end"))
    while not running.done():
        peak = max(peak, _resident())
        await asyncio.sleep(0.005)
    result = await running
    assert result.return_code == 0
    assert max(peak, _resident()) - before < 64 << 20
    stdout = result.stdout or ""
    assert stdout.startswith("xxxx") and stdout.endswith("xxxend\n")
    assert "bytes of output left out here" in stdout and len(stdout) < 9 << 20


@pytest.mark.parametrize(
    "wreck", ["rm -rf /bin /tmp/*", "rm -rf /usr/bin /bin", "rm -rf --no-preserve-root / 2>/dev/null"]
)
async def test_broken_sandbox_is_said(workplace: Workplace, wreck: str) -> None:
    outcome = await workplace.run(workplace.task(wreck, "echo 0 > /logs/verifier/reward.txt"))
    assert outcome.error == "SandboxFault" and outcome.reward is None
    assert "broken" in outcome.result.exception_info.exception_message  # type: ignore[union-attr]


async def test_command_that_is_missing_is_no_broken_sandbox(make: Make) -> None:
    sandbox = await make()
    assert (await sandbox.exec("no-such-command")).return_code == 127
    assert (await sandbox.exec("exit 126")).return_code == 126
    assert (await sandbox.exec("rm -rf /tmp/* /opt; /bin/sh -c true")).return_code == 0


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
