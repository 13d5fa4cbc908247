"""Limits: memory, processes, CPU; and that a sandbox at its limits harms nobody else."""

from __future__ import annotations

import asyncio

from harbor.environments.base import BaseEnvironment

from tests.contracts.sandbox.conftest import MakeSandbox
from tests.contracts.sandbox.kinds import Wish

# Writes to every page, so that the memory is really used.
EAT = "perl -e 'my $x = \"x\" x ({megabytes} * 1024 * 1024); print length($x)'"


async def test_memory_limit_holds(make_sandbox: MakeSandbox) -> None:
    sandbox = await make_sandbox(Wish(memory_mb=128))
    assert (await sandbox.exec(EAT.format(megabytes=32))).return_code == 0
    assert (await sandbox.exec(EAT.format(megabytes=400), timeout_sec=60)).return_code != 0
    assert (await sandbox.exec("echo usable")).stdout == "usable\n"


async def test_memory_kill_is_told_apart(make_sandbox: MakeSandbox) -> None:
    """From a command that merely ends with the same status."""
    sandbox = await make_sandbox(Wish(memory_mb=128))
    assert (await sandbox.exec("exit 137")).return_code == 137
    assert (await sandbox.exec("kill -9 $$")).return_code == 137
    assert not sandbox.facts.memory_killed  # type: ignore[attr-defined]
    assert (await sandbox.exec(EAT.format(megabytes=400), timeout_sec=60)).return_code == 137
    await sandbox.stop(delete=True)
    assert sandbox.facts.memory_killed  # type: ignore[attr-defined]


async def test_pids_limit_holds(make_sandbox: MakeSandbox) -> None:
    sandbox = await make_sandbox(Wish(options={"default_pids": 64}))
    few = await sandbox.exec("for i in $(seq 20); do sleep 3 & done; echo $(jobs -p | wc -l); wait")
    assert (few.stdout or "").strip() == "20"
    many = "for i in $(seq 200); do sleep 3 >/dev/null 2>&1 & done 2>/dev/null; ls -d /proc/[0-9]* | wc -l"
    result = await sandbox.exec(f"{many}; kill $(jobs -p) 2>/dev/null; exit 0", timeout_sec=60)
    counted = [int(word) for word in (result.stdout or "").split() if word.isdigit()]
    assert not counted or counted[0] <= 64
    await asyncio.sleep(3.5)
    assert (await sandbox.exec("echo usable")).stdout == "usable\n"


async def test_cpu_limit_holds(make_sandbox: MakeSandbox) -> None:
    """Two busy loops with one CPU get no more than one CPU's time, whatever else the machine does."""
    sandbox = await make_sandbox(Wish(cpus=1))
    spin = "timeout 3 perl -e 'while (1) {}'"
    result = await sandbox.exec(f"({spin} & {spin} & wait); times", timeout_sec=60)
    minutes, _, seconds = (result.stdout or "").split("\n")[1].split()[0].rstrip("s").partition("m")
    assert float(minutes) * 60 + float(seconds) <= 3.0 * 1.3


async def test_fork_bomb_leaves_neighbours_alone(make_sandbox: MakeSandbox, sandbox: BaseEnvironment) -> None:
    bomb = await make_sandbox(Wish(options={"default_pids": 128}))
    exploding = asyncio.create_task(bomb.exec("bomb() { bomb | bomb & }; bomb; sleep 30", timeout_sec=4))
    await asyncio.sleep(1)
    assert (await asyncio.wait_for(sandbox.exec("echo fine"), 20)).stdout == "fine\n"
    await asyncio.gather(exploding, return_exceptions=True)
    await asyncio.wait_for(bomb.stop(delete=True), 60)
