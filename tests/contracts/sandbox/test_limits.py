"""Limits: memory, processes, CPU; and that a sandbox at its limits harms nobody else."""

from __future__ import annotations

import asyncio

from harbor.environments.base import BaseEnvironment

from tests.contracts.sandbox.conftest import MakeSandbox
from tests.contracts.sandbox.kinds import Wish
from tests.waiting import LIMIT_SEC

# Writes to every page, so that the memory is really used.
HEAVY_SEC = 300
"""For commands that touch hundreds of megabytes or processes. gVisor takes a minute for them on a busy machine."""
EAT = "perl -e 'my $x = \"x\" x ({megabytes} * 1024 * 1024); print length($x)'"


async def test_memory_limit_holds(make_sandbox: MakeSandbox) -> None:
    sandbox = await make_sandbox(Wish(memory_mb=128))
    assert (await sandbox.exec(EAT.format(megabytes=32))).return_code == 0
    assert (await sandbox.exec(EAT.format(megabytes=200), timeout_sec=HEAVY_SEC)).return_code != 0
    assert (await sandbox.exec("echo usable")).stdout == "usable\n"


async def test_memory_kill_is_told_apart(make_sandbox: MakeSandbox) -> None:
    """From a command that merely ends with the same status."""
    sandbox = await make_sandbox(Wish(memory_mb=128))
    assert (await sandbox.exec("exit 137")).return_code == 137
    assert (await sandbox.exec("kill -9 $$")).return_code == 137
    assert not sandbox.facts.memory_killed  # type: ignore[attr-defined]
    assert (await sandbox.exec(EAT.format(megabytes=200), timeout_sec=HEAVY_SEC)).return_code == 137
    await sandbox.stop(delete=True)
    assert sandbox.facts.memory_killed  # type: ignore[attr-defined]


# Forks until it is refused or has five hundred children, and says how many it has.
FORK = (
    "perl -e 'while ($n < $ARGV[0]) { $p = fork; last if !defined $p; if (!$p) { sleep 600; exit } $n++; push @p, $p }"
    " print $n; kill 9, @p; 1 while wait > 0' "
)


async def test_pids_limit_holds(make_sandbox: MakeSandbox) -> None:
    sandbox = await make_sandbox(Wish(options={"default_pids": 64}))
    assert (await sandbox.exec(f"{FORK} 20")).stdout == "20"
    assert 20 < int((await sandbox.exec(f"{FORK} 500", timeout_sec=HEAVY_SEC)).stdout or 0) <= 64
    assert (await sandbox.exec("echo usable")).stdout == "usable\n"


async def test_cpu_limit_holds(make_sandbox: MakeSandbox) -> None:
    """Two busy loops with one CPU get no more than one CPU's time, whatever else the machine does."""
    sandbox = await make_sandbox(Wish(cpus=1))
    spin = "timeout 3 perl -e 'while (1) {}'"
    command = f"date +%s.%N; ({spin} & {spin} & wait); times; date +%s.%N"
    began, _, used, ended = (await sandbox.exec(command, timeout_sec=120)).stdout.split("\n")[:4]  # type: ignore[union-attr]
    minutes, _, seconds = used.split()[0].rstrip("s").partition("m")
    assert float(minutes) * 60 + float(seconds) <= (float(ended) - float(began)) * 1.3


async def test_fork_bomb_leaves_neighbours_alone(make_sandbox: MakeSandbox, sandbox: BaseEnvironment) -> None:
    bomb = await make_sandbox(Wish(options={"default_pids": 128}))
    exploding = asyncio.create_task(bomb.exec("bomb() { bomb | bomb & }; bomb; sleep 30", timeout_sec=4))
    while not exploding.done():
        assert (await asyncio.wait_for(sandbox.exec("echo fine"), LIMIT_SEC)).stdout == "fine\n"
    await asyncio.gather(exploding, return_exceptions=True)
    await asyncio.wait_for(bomb.stop(delete=True), LIMIT_SEC)
