"""What happens to the machine: as little as possible, next to other firewalls, and undone at the end."""

from __future__ import annotations

import asyncio
import subprocess
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.sandboxes.network.network import SandboxNetwork
from seatrial.sandboxes.network.network_set import SandboxNetworks
from seatrial.sandboxes.options import SandboxOptions
from tests.integration.network.world import WEB, World, batch, greeting, reaches, run
from tests.waiting import eventually

pytestmark = pytest.mark.sandbox

PUBLIC = NetworkPolicy()


def forwarding(interface: str) -> str:
    return Path(f"/proc/sys/net/ipv4/conf/{interface}/forwarding").read_text().strip()


def set_forwarding(value: str) -> None:
    Path("/proc/sys/net/ipv4/ip_forward").write_text(value)


def state() -> str:
    """Everything about the machine that we could have changed."""
    return run("ip -brief address", "ip route", "nft list ruleset", "sysctl -a --pattern forwarding")


async def seen(network: SandboxNetwork, address: str, port: int = 80, timeout: float = 1.0) -> bool:
    return await asyncio.to_thread(reaches, network.netns_path, address, port, timeout)


async def test_the_machine_is_afterwards_as_it_was(surroundings: World, options: SandboxOptions) -> None:
    before = state()
    async with SandboxNetworks(options, names=surroundings.names) as networks:
        network = await networks.acquire(PUBLIC, "one")
        assert await seen(network, WEB)
        assert state() != before
        assert forwarding("all") == "0"
        assert [forwarding("wan"), forwarding("lan")] == ["1", "1"]
    assert state() == before


async def test_nothing_is_set_up_before_it_is_needed(surroundings: World, options: SandboxOptions) -> None:
    before = state()
    async with SandboxNetworks(options, names=surroundings.names) as networks:
        assert await networks.sweep() == 0
        assert state() == before


async def test_the_machine_does_not_become_a_router_for_others(networks: SandboxNetworks, surroundings: World) -> None:
    """A host behind ``lan`` sends packets for the internet to the machine, which has to forward for sandboxes only."""
    batch("link add inner type veth peer name inner-far", "address add 10.77.0.1/24 dev inner", "link set inner up")
    outside = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    try:
        namespace = Path(f"/proc/{outside.pid}/ns/net")
        while namespace.readlink() == Path("/proc/thread-self/ns/net").readlink():
            await asyncio.sleep(0.01)
        batch(f"link set inner-far netns {outside.pid}")
        batch(
            "address add 10.77.0.2/24 dev inner-far",
            "link set inner-far up",
            "route add default via 10.77.0.1",
            namespace=namespace,
        )
        batch("route add 10.77.0.0/24 via 192.0.2.2", namespace=surroundings.internet)
        network = await networks.acquire(PUBLIC, "one")
        assert forwarding("inner") == "1"
        assert await seen(network, WEB)
        assert not await asyncio.to_thread(reaches, namespace, WEB, 80, 0.7)
        set_forwarding("1")  # the administrator, or dockerd, makes it a router
        await networks.sweep()
        assert await asyncio.to_thread(reaches, namespace, WEB)
        assert await seen(network, WEB)
    finally:
        outside.kill()
        outside.wait()


async def test_forwarding_that_was_on_stays_on(surroundings: World, options: SandboxOptions) -> None:
    set_forwarding("1")
    async with SandboxNetworks(options, names=surroundings.names) as networks:
        assert await seen(await networks.acquire(PUBLIC, "one"), WEB)
    assert [forwarding("all"), forwarding("wan")] == ["1", "1"]


@pytest.mark.parametrize(
    "closed",
    [
        ["iptables-nft -P FORWARD DROP"],
        ["iptables-nft -A FORWARD -j REJECT"],
        ["iptables-legacy -P FORWARD DROP"],
        ["iptables-legacy -A FORWARD -j REJECT"],
        [
            "nft add table inet strict",
            "nft add chain inet strict fw { type filter hook forward priority 0 ; policy drop ; }",
        ],
    ],
    ids=["nft policy", "nft rule", "legacy policy", "legacy rule", "native"],
)
async def test_a_way_through_other_firewalls(surroundings: World, options: SandboxOptions, closed: list[str]) -> None:
    run("iptables-nft -A FORWARD -i decoy0 -j ACCEPT", *closed)
    listings = ("iptables-nft -S FORWARD", "iptables-legacy -S FORWARD", "nft list ruleset")
    before = run(*listings)
    async with SandboxNetworks(options, names=surroundings.names) as networks:
        network = await networks.acquire(PUBLIC, "one")
        assert await seen(network, WEB)
        during = run(*listings)
        assert during.count("seat000") > before.count("seat000")
        run("iptables-nft -A FORWARD -i decoy1 -j ACCEPT")  # others can still change their rules
        run("iptables-nft -D FORWARD -i decoy1 -j ACCEPT")
        await networks.sweep()
        assert run(*listings).count("seat000") == during.count("seat000")  # nothing is put in twice
    assert _without_counters(run(*listings)) == _without_counters(before)


async def test_a_firewall_that_comes_later_is_noticed(networks: SandboxNetworks) -> None:
    network = await networks.acquire(PUBLIC, "one")
    assert await seen(network, WEB)
    run("iptables-nft -P FORWARD DROP")
    assert not await seen(network, WEB, timeout=0.7)
    await networks.sweep()
    assert await seen(network, WEB)


async def test_rules_flushed_by_somebody_open_nothing_and_come_back(networks: SandboxNetworks) -> None:
    network = await networks.acquire(PUBLIC, "one")
    run("nft flush ruleset")
    assert reaches(None, "10.9.0.1", 8000)
    assert not await seen(network, "10.9.0.1", 8000)
    assert not await seen(network, "192.0.2.2", 8000)
    assert not await seen(network, WEB, timeout=0.7)
    await networks.sweep()
    assert await seen(network, WEB)
    assert not await seen(network, "10.9.0.1", 8000)


async def test_an_address_the_machine_gets_later_is_out_of_reach_too(networks: SandboxNetworks) -> None:
    network = await networks.acquire(PUBLIC, "one")
    batch("address add 192.0.2.77/24 dev wan")
    assert reaches(None, "192.0.2.77", 8000)
    assert not await seen(network, "192.0.2.77", 8000)
    await networks.sweep()
    assert not await seen(network, "192.0.2.77", 8000)


async def test_a_port_that_the_machine_publishes_for_a_container_is_out_of_reach(networks: SandboxNetworks) -> None:
    """The machine sends 203.0.113.200:8080 on to a container, as engines do."""
    network = await networks.acquire(PUBLIC, "one")
    run(
        "nft add table ip engine",
        "nft add chain ip engine pre { type nat hook prerouting priority -100 ; }",
        "nft add chain ip engine out { type nat hook output priority -100 ; }",
        f"nft add rule ip engine pre ip daddr 203.0.113.200 tcp dport 8080 dnat to {WEB}:80",
        f"nft add rule ip engine out ip daddr 203.0.113.200 tcp dport 8080 dnat to {WEB}:80",
    )
    assert greeting(None, "203.0.113.200", 8080).startswith(f"{WEB} greets ")
    assert "greets" not in await asyncio.to_thread(greeting, network.netns_path, "203.0.113.200", 8080, 0.7)
    assert await seen(network, WEB)


async def test_two_processes_get_different_addresses_and_do_not_reach_each_other(
    networks: SandboxNetworks, surroundings: World, options: SandboxOptions
) -> None:
    everywhere = NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["0.0.0.0/0"])
    async with SandboxNetworks(options, names=surroundings.names) as others:
        one, two = await networks.acquire(everywhere, "one"), await others.acquire(everywhere, "two")
        first, second = (IPv4Address(network.hosts.splitlines()[-1].split()[0]) for network in (one, two))
        assert second not in IPv4Network(f"{first}/21", strict=False)
        assert await seen(one, WEB)
        assert await seen(two, WEB)
        surroundings.greet(two.netns_path, 7000)
        assert await seen(two, str(second), 7000)
        assert not await seen(one, str(second), 7000)
    assert await seen(one, WEB)  # the first one's network does not go with the second's
    assert forwarding("wan") == "1"


async def test_addresses_in_use_on_the_machine_are_avoided(surroundings: World, options: SandboxOptions) -> None:
    batch("route add 198.18.0.0/16 via 192.0.2.1", "address add 198.19.0.9/32 dev lan")
    async with SandboxNetworks(options, names=surroundings.names) as networks:
        network = await networks.acquire(PUBLIC, "one")
        address = IPv4Address(network.hosts.splitlines()[-1].split()[0])
        assert address in IPv4Network("198.19.8.0/21")
        assert await seen(network, WEB)


def _without_counters(rules: str) -> str:
    words = rules.split()
    return " ".join(word for place, word in enumerate(words) if words[place - 1] not in ("packets", "bytes"))


class GarbledAtFirst(SandboxNetworks):
    """The firewall's tool prints something that is no JSON, twice."""

    looks = 0

    async def sweep(self) -> int:
        self.looks += 1
        if self.looks <= 2:
            raise ValueError("Expecting value: line 1 column 1 (char 0)")
        return await super().sweep()


async def test_a_look_that_failed_is_followed_by_others(
    surroundings: World, options: SandboxOptions, caplog: pytest.LogCaptureFixture
) -> None:
    async with GarbledAtFirst(options, names=surroundings.names, follow_sec=0.01) as networks:
        await networks.acquire(PUBLIC, "one")
        await eventually(lambda: networks.looks >= 4, "it looks again")
    assert any("Network check failed" in said for said in caplog.messages)
