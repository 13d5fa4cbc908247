"""Hundreds at once, and nothing of them afterwards."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.sandboxes.network.network import RoutedNetwork, SandboxNetwork
from seatrial.sandboxes.network.network_set import SandboxNetworks
from tests.integration.network.world import OTHER_WEB, WEB, reaches
from tests.waiting import eventually

pytestmark = pytest.mark.sandbox

PUBLIC = NetworkPolicy()
LISTED = NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["203.0.113.0/28", "web.example"])


def address(network: SandboxNetwork) -> str:
    return network.hosts.splitlines()[-1].split()[0]


def in_router(networks: SandboxNetworks, *command: str) -> str:
    router = networks._router
    assert router is not None
    assert router.namespace is not None
    enter = ["nsenter", f"--net={router.namespace.path}"]
    return subprocess.run([*enter, *command], check=True, capture_output=True, text=True).stdout


async def test_two_hundred_at_once_with_addresses_of_their_own(networks: SandboxNetworks) -> None:
    policies = [PUBLIC, LISTED]
    held = await asyncio.gather(*(networks.acquire(policies[i % 2], f"sandbox {i}") for i in range(200)))
    assert len({address(network) for network in held}) == 200
    assert len({os.readlink(str(network.netns_path)) for network in held}) == 200
    for network, other in ((held[0], True), (held[1], False), (held[198], True), (held[199], False)):
        assert await asyncio.to_thread(reaches, network.netns_path, WEB)
        assert await asyncio.to_thread(reaches, network.netns_path, OTHER_WEB) is other
    open_files = len(os.listdir("/proc/self/fd"))

    await asyncio.gather(*(network.release() for network in held))
    assert open_files - len(os.listdir("/proc/self/fd")) >= 380  # some stand ready for the next
    rules = in_router(networks, "nft", "list", "table", "inet", "seatrial")
    assert not any(f"{address(network)} " in rules or f"{address(network)}," in rules for network in held)
    most = 2 + 4  # lo, uplink, and what is kept in stock
    await eventually(
        lambda: in_router(networks, "ip", "-brief", "link").count("\n") <= most, "the interfaces are removed"
    )


async def test_an_address_still_held_by_a_process_is_not_given_out_again(networks: SandboxNetworks) -> None:
    first = await networks.acquire(PUBLIC, "first")
    left = subprocess.Popen(["nsenter", f"--net={first.netns_path}", "sleep", "600"])
    try:
        while Path(f"/proc/{left.pid}/ns/net").readlink() == Path("/proc/thread-self/ns/net").readlink():
            await asyncio.sleep(0.01)
        await first.release()
        router = networks._router
        assert router is not None
        router._free.rotate(1)  # it would come next
        while networks._stock:
            await (await networks.acquire(PUBLIC, "from stock")).release()
        second = await networks.acquire(PUBLIC, "second")
        assert address(second) != address(first)
        assert await asyncio.to_thread(reaches, second.netns_path, WEB)
    finally:
        left.kill()
        left.wait()


async def test_giving_up_while_waiting_leaks_nothing(networks: SandboxNetworks) -> None:
    await (await networks.acquire(PUBLIC, "warm")).release()
    tasks = [asyncio.create_task(networks.acquire(PUBLIC, f"s{i}")) for i in range(20)]
    await asyncio.sleep(0.005)
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert any(isinstance(result, asyncio.CancelledError) for result in results)
    for result in results:
        if isinstance(result, RoutedNetwork):
            await result.release()
    assert networks._held == {}
