"""After a process was killed: its sandboxes are cut off, what it left is removed, what is not ours is not."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harbor.models.task.config import NetworkPolicy

from seatrial.sandboxes.network.network_set import SandboxNetworks
from seatrial.sandboxes.network.uplink import ProcessStamp
from seatrial.sandboxes.options import SandboxOptions
from tests.integration.network.world import WEB, World, batch, reaches, run
from tests.waiting import eventually

pytestmark = pytest.mark.sandbox

PUBLIC = NetworkPolicy()


@contextmanager
def holder(surroundings: World, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Another process that has a network, and the namespace of the sandbox's process that it started."""
    command = [sys.executable, "-m", "tests.integration.network.holder"]
    process = subprocess.Popen(
        [*command, str(folder), str(surroundings.resolv_conf), str(surroundings.hosts)], stdout=subprocess.PIPE
    )
    left = 0
    try:
        assert process.stdout is not None
        left = int(process.stdout.readline())
        yield process, Path(f"/proc/{left}/ns/net")
    finally:
        process.kill()
        process.communicate()
        if left:
            os.kill(left, 9)


def another(stamp: ProcessStamp, **changes: int) -> ProcessStamp:
    """The stamp of another process of the same installation."""
    return stamp.model_copy(update={"process": stamp.process.model_copy(update=changes)})


def interfaces() -> list[str]:
    return [line.split()[0].partition("@")[0] for line in run("ip -brief link").splitlines()]


async def gone(interface: str) -> bool:
    """The kernel removes it with the namespace at its other end, soon."""
    await eventually(lambda: interface not in interfaces(), f"{interface} is gone")
    return True


async def test_a_killed_process_leaves_nothing_behind(
    surroundings: World, networks: SandboxNetworks, tmp_path: Path
) -> None:
    """A forward rule in somebody else's chain and the switched-on forwarding are among the things left."""
    run("iptables-nft -P FORWARD DROP", "iptables-nft -A FORWARD -i decoy0 -j ACCEPT")
    before = run("nft list ruleset", "sysctl -a --pattern forwarding")
    with holder(surroundings, tmp_path) as (process, sandbox):
        assert await asyncio.to_thread(reaches, sandbox, WEB)
        assert "seat000" in interfaces()
        assert await networks.sweep() == 0  # of a living process nothing is taken
        assert await asyncio.to_thread(reaches, sandbox, WEB)

        process.kill()
        process.wait()
        assert await gone("seat000")
        assert not await asyncio.to_thread(reaches, sandbox, WEB, 80, 0.7)
        assert not await asyncio.to_thread(reaches, sandbox, "192.0.2.2", 8000, 0.7)
        assert "seatrial_000_test" in run("nft list tables")

        assert await networks.sweep() == 3  # the table, and two rules in the other firewall's chain
        assert run("nft list ruleset", "sysctl -a --pattern forwarding") == before
        assert await networks.sweep() == 0


async def test_the_next_process_takes_over(surroundings: World, networks: SandboxNetworks, tmp_path: Path) -> None:
    """Without a sweep: whoever sets up next clears first, and keeps the machine forwarding."""
    with holder(surroundings, tmp_path) as (process, _):
        process.kill()
        process.wait()
        assert await gone("seat000")
        network = await networks.acquire(PUBLIC, "one")
        assert await asyncio.to_thread(reaches, network.netns_path, WEB)
        assert "seatrial_000_test" not in run("nft list tables")


async def test_an_interface_that_outlived_its_process_is_removed(
    surroundings: World, networks: SandboxNetworks
) -> None:
    """When something else keeps the router's namespace open, the interface does not go by itself."""
    dead = subprocess.Popen(["true"])
    stamp = another(ProcessStamp.of_this_process("test"), pid=dead.pid, started=1)
    dead.wait()
    batch("link add seat005 type veth peer name seat005-far", f"link set seat005 alias 'seatrial {stamp}'")
    assert await networks.sweep() == 1
    assert "seat005" not in interfaces()


async def test_what_is_not_ours_survives(surroundings: World, networks: SandboxNetworks) -> None:
    ours = ProcessStamp.of_this_process("test")
    elsewhere = another(ours, pid=4_000_000, namespace=ours.process.namespace + 1)
    dead = another(ours, pid=4_000_000, started=1)
    batch(
        "link add seat777 type veth peer name decoy1",  # our kind of name, no label
        "link add seat778 type veth peer name decoy2",
        "link set seat778 alias 'seatrial is a fine word'",
        "link add seat779 type veth peer name decoy3",
        f"link set seat779 alias 'seatrial {elsewhere}'",  # of a process that cannot be seen from here
        "link add seat780 type veth peer name decoy4",
        f"link set seat780 alias 'seatrial {ours}'",  # of a living process
        "link add decoy type veth peer name decoy5",  # our label, not our kind of name
        f"link set decoy alias 'seatrial {dead}'",
    )
    decoys = ("seatrial", "seatrial_decoy", "seatrial_000_decoy", f"seatrial_000_{ours}", f"seatrial_001_{elsewhere}")
    run(*(f"nft add table inet {name}" for name in decoys))
    run(f"nft add table ip seatrial_000_{dead}", f"nft add table inet seatrial_000_{dead}")
    assert await networks.sweep() == 1  # the positive control: the last one is a leftover
    tables = run("nft list tables").splitlines()
    assert [f"table inet {name}" in tables for name in decoys] == [True] * len(decoys)
    assert f"table ip seatrial_000_{dead}" in tables
    assert f"table inet seatrial_000_{dead}" not in tables
    assert {"seat777", "seat778", "seat779", "seat780", "decoy"} <= set(interfaces())


async def test_a_pause_of_the_event_loop_is_no_death(
    surroundings: World, options: SandboxOptions, networks: SandboxNetworks, tmp_path: Path
) -> None:
    with holder(surroundings, tmp_path) as (process, sandbox):
        process.send_signal(19)
        try:
            assert await networks.sweep() == 0
            assert await asyncio.to_thread(reaches, sandbox, WEB)
        finally:
            process.send_signal(18)
