"""What a sandbox reaches in each mode, and what never. What must not be reached is reached from elsewhere first."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import subprocess
from pathlib import Path

import pytest
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.errors import InvalidInput, Unsupported
from seatrial.sandboxes.network.network import SandboxNetwork
from seatrial.sandboxes.network.network_set import SandboxNetworks
from seatrial.sandboxes.options import SandboxOptions
from tests.integration.network.world import (
    BELOW,
    INTERNET,
    MACHINE_ADDRESSES,
    METADATA,
    NAMES,
    OTHER_WEB,
    PRIVATE,
    SERVICES,
    WEB,
    World,
    greeting,
    inside,
    look_up,
    reaches,
)
from tests.waiting import LIMIT_SEC, eventually

pytestmark = pytest.mark.sandbox

PUBLIC = NetworkPolicy()
NONE = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)


def allow(*hosts: str) -> NetworkPolicy:
    return NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=list(hosts))


async def seen(network: SandboxNetwork, address: str, port: int = 80, timeout: float = 2.0) -> bool:
    return await asyncio.to_thread(reaches, network.netns_path, address, port, timeout)


async def named(network: SandboxNetwork, name: str, *, stream: bool = False) -> list[str] | int:
    assert network.netns_path is not None
    return await asyncio.to_thread(look_up, network.netns_path, network.resolv_conf, name, stream=stream)


async def test_public_reaches_the_internet_through_the_machines_address(networks: SandboxNetworks) -> None:
    network = await networks.acquire(PUBLIC, "one")
    assert network.description == "public (NAT)"
    assert await asyncio.to_thread(greeting, network.netns_path, WEB) == f"{WEB} greets 192.0.2.2\n"
    assert await seen(network, OTHER_WEB)


async def test_no_network_reaches_nothing_and_hears_it_at_once(networks: SandboxNetworks, surroundings: World) -> None:
    network = await networks.acquire(NONE, "one")
    assert network.description == "no-network"
    for address, port in (*((one, 80) for one in INTERNET), *((one, 8000) for one in MACHINE_ADDRESSES)):
        assert reaches(None, address, port)
        assert "unreachable" in await asyncio.to_thread(greeting, network.netns_path, address, port)
    assert network.netns_path is not None
    silent = await asyncio.to_thread(look_up, network.netns_path, network.resolv_conf, "web.example", within_sec=3)
    assert silent == -1
    assert surroundings.asked == []


async def test_the_loopback_and_the_own_address_work_in_every_mode(networks: SandboxNetworks) -> None:
    network = await networks.acquire(NONE, "My Trial__1")
    assert network.hostname == "my-trial-1"
    own = network.hosts.splitlines()[-1].split()
    assert own[1] == network.hostname

    def talk_to_self() -> set[str]:
        met = set()
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET, own[0])):
            with (
                socket.create_server((address, 0), family=family) as server,
                socket.create_connection(server.getsockname()[:2], timeout=LIMIT_SEC),
            ):
                met.add(address)
        return met

    assert await asyncio.to_thread(inside, network.netns_path, talk_to_self) == {"127.0.0.1", "::1", own[0]}


@pytest.mark.parametrize("policy", [PUBLIC, allow(WEB)], ids=["public", "allowlist"])
async def test_services_of_the_machine_are_out_of_reach(networks: SandboxNetworks, policy: NetworkPolicy) -> None:
    network = await networks.acquire(policy, "one")
    gateway = network.resolv_conf.split()[1]
    assert await seen(network, WEB)
    for service, port in SERVICES.items():
        for address in MACHINE_ADDRESSES:
            assert reaches(None, address, port), service
            assert not await seen(network, address, port), service
        assert not await seen(network, "127.0.0.1", port), service
        assert not await seen(network, gateway, port), service


async def test_an_allowlist_cannot_open_the_machine_or_the_metadata_service(networks: SandboxNetworks) -> None:
    network = await networks.acquire(allow("0.0.0.0/0"), "one")
    assert await seen(network, WEB)
    assert reaches(None, PRIVATE)
    assert not await seen(network, PRIVATE)
    assert reaches(None, METADATA)
    assert not await seen(network, METADATA)
    for address in MACHINE_ADDRESSES:
        assert reaches(None, address, 8000)
        assert not await seen(network, address, 8000)


async def test_public_reaches_neither_private_addresses_nor_the_metadata_service(networks: SandboxNetworks) -> None:
    network = await networks.acquire(PUBLIC, "one")
    assert await seen(network, WEB)
    for address in (PRIVATE, METADATA):
        assert reaches(None, address)
        assert not await seen(network, address)


async def test_the_operator_opens_private_addresses_but_never_the_metadata_service(
    surroundings: World, options: SandboxOptions
) -> None:
    opened = options.model_copy(update={"allow_private_network": True})
    async with SandboxNetworks(opened, names=surroundings.names) as networks:
        network = await networks.acquire(PUBLIC, "one")
        assert await seen(network, PRIVATE)
        assert not await seen(network, METADATA)
        assert not await seen(network, MACHINE_ADDRESSES[1], 8000)


async def test_the_operator_grants_a_single_private_address(surroundings: World, options: SandboxOptions) -> None:
    granted = options.model_copy(update={"private_destinations": f"{PRIVATE}, {METADATA}"})
    async with SandboxNetworks(granted, names=surroundings.names) as networks:
        network = await networks.acquire(PUBLIC, "one")
        assert await seen(network, PRIVATE)
        assert reaches(None, "10.9.0.2")
        assert not await seen(network, "10.9.0.2")
        assert not await seen(network, METADATA)


async def test_neighbours_do_not_reach_each_other(networks: SandboxNetworks, surroundings: World) -> None:
    one, two = await asyncio.gather(networks.acquire(PUBLIC, "one"), networks.acquire(allow("0.0.0.0/0"), "two"))
    target = two.hosts.splitlines()[-1].split()[0]

    surroundings.greet(two.netns_path, 7000)
    assert await seen(two, target, 7000)
    assert not await seen(one, target, 7000)
    assert not reaches(None, target, 7000, timeout=0.7)


async def test_a_forged_source_address_goes_nowhere(networks: SandboxNetworks, surroundings: World) -> None:
    one, two = await asyncio.gather(networks.acquire(PUBLIC, "one"), networks.acquire(PUBLIC, "two"))
    own, other = (network.hosts.splitlines()[-1].split()[0] for network in (one, two))

    def send(source: str, payload: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
            datagram = struct.pack("!HHHH", 9000, 9000, 8 + len(payload), 0) + payload
            header = struct.pack(
                "!BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), 1, 0, 64, 17, 0, socket.inet_aton(source),
                socket.inet_aton(WEB),
            )  # fmt: skip
            raw.sendto(header + datagram, (WEB, 0))

    for source, payload in ((other, b"forged"), ("192.0.2.2", b"forged too"), (own, b"honest")):
        await asyncio.to_thread(inside, one.netns_path, lambda s=source, p=payload: send(s, p))
    # The honest one was sent last, over the same way.
    await eventually(lambda: b"honest" in surroundings.datagrams, "the honest datagram")
    assert surroundings.datagrams == [b"honest"]


async def test_an_allowlist_opens_private_addresses_only_with_the_operators_word(
    networks: SandboxNetworks, surroundings: World, options: SandboxOptions
) -> None:
    with pytest.raises(Unsupported, match="only the operator"):
        await networks.acquire(allow(WEB, PRIVATE), "one")
    granted = options.model_copy(update={"private_destinations": PRIVATE})
    async with SandboxNetworks(granted, names=surroundings.names) as opened:
        assert await seen(await opened.acquire(allow(PRIVATE), "one"), PRIVATE)


async def test_an_allowlist_of_addresses(networks: SandboxNetworks) -> None:
    network = await networks.acquire(allow(WEB, "203.0.113.128/25", "203.0.113.128/26"), "one")
    assert network.description == f"allowlist: {WEB}, 203.0.113.128/25, 203.0.113.128/26"
    for address in (WEB, BELOW):
        assert await seen(network, address)
    for address in (OTHER_WEB, NAMES):
        assert reaches(None, address)
        assert not await seen(network, address)


async def test_an_allowlist_of_names(networks: SandboxNetworks, surroundings: World) -> None:
    network = await networks.acquire(allow("web.example", "*.below.example"), "one")
    for address in (WEB, BELOW, OTHER_WEB):
        assert reaches(None, address)
        assert not await seen(network, address)  # nobody has asked for a name yet

    assert await named(network, "web.example") == [WEB]
    assert await seen(network, WEB)
    assert await named(network, "b.c.below.example") == [BELOW]
    assert await named(network, "A.Below.Example", stream=True) == [BELOW]
    assert await seen(network, BELOW)

    surroundings.asked.clear()
    for name in ("other.example", "below.example", "evilbelow.example", "example", "secret.tunnel.example"):
        assert await named(network, name) == 5
    assert surroundings.asked == []  # not even the question leaves the machine
    assert not await seen(network, OTHER_WEB)
    assert not await seen(network, NAMES, 53)


async def test_an_allowed_name_that_leads_inside_opens_nothing(networks: SandboxNetworks) -> None:
    network = await networks.acquire(allow("inside.example", "metadata.example", "web.example"), "one")
    for name, address in (("inside.example", PRIVATE), ("metadata.example", METADATA)):
        assert await named(network, name) == [address]
        assert reaches(None, address)
        assert not await seen(network, address)
    assert await named(network, "web.example") == [WEB]
    assert await seen(network, WEB)


async def test_one_sandboxs_allowlist_is_not_anothers(networks: SandboxNetworks) -> None:
    one, two = await asyncio.gather(
        networks.acquire(allow("web.example"), "one"), networks.acquire(allow("other.example"), "two")
    )
    assert await named(one, "web.example") == [WEB]
    assert await named(two, "other.example") == [OTHER_WEB]
    assert [await seen(one, WEB), await seen(one, OTHER_WEB)] == [True, False]
    assert [await seen(two, WEB), await seen(two, OTHER_WEB)] == [False, True]


async def test_a_change_of_policy_cuts_what_is_connected(networks: SandboxNetworks) -> None:
    network = await networks.acquire(PUBLIC, "one")

    def connect() -> socket.socket:
        connection = socket.create_connection((WEB, 80), timeout=LIMIT_SEC)
        assert connection.recv(100).startswith(WEB.encode())
        return connection

    def echoes(connection: socket.socket, word: bytes, seconds: float = LIMIT_SEC) -> bool:
        try:
            connection.settimeout(seconds)
            connection.sendall(word)
            return connection.recv(100) == word
        except OSError:
            return False

    kept = await asyncio.to_thread(inside, network.netns_path, connect)
    with kept:
        assert await asyncio.to_thread(echoes, kept, b"before")
        await network.apply(NONE)
        assert network.description == "no-network"
        assert not await asyncio.to_thread(echoes, kept, b"after", 0.7)
        assert not await seen(network, WEB)

    await network.apply(allow("web.example"))
    assert not await seen(network, WEB)
    assert await named(network, "web.example") == [WEB]
    kept = await asyncio.to_thread(inside, network.netns_path, connect)
    with kept:
        assert await asyncio.to_thread(echoes, kept, b"before")
        await network.apply(allow("web.example", "other.example"))  # still allowed, so it goes on
        assert await asyncio.to_thread(echoes, kept, b"still")
        await network.apply(allow("other.example"))
        assert not await asyncio.to_thread(echoes, kept, b"after", 0.7)
    assert not await seen(network, WEB)

    await network.apply(PUBLIC)
    assert await seen(network, WEB)
    await network.release()
    await network.release()


async def test_a_released_network_is_cut_even_if_a_process_is_left_in_it(networks: SandboxNetworks) -> None:
    network = await networks.acquire(PUBLIC, "one")
    left = subprocess.Popen(["nsenter", f"--net={network.netns_path}", "sleep", "600"])
    try:
        while not await asyncio.to_thread(_is_apart, left.pid):
            await asyncio.sleep(0.01)
        namespace = Path(f"/proc/{left.pid}/ns/net")
        assert await asyncio.to_thread(reaches, namespace, WEB)
        await network.release()
        assert not await asyncio.to_thread(reaches, namespace, WEB, 80, 1)
    finally:
        left.kill()
        left.wait()


async def test_nothing_of_a_sandbox_is_left_for_the_next_one(networks: SandboxNetworks) -> None:
    """Namespaces are never used twice: no port is taken, no connection lingers."""
    for turn in range(8):
        network = await networks.acquire(PUBLIC, f"turn {turn}")

        def serve_and_abandon() -> str:
            server = socket.socket()  # without SO_REUSEADDR: a lingering connection would make this fail
            server.bind(("", 8080))
            server.listen()
            client = socket.create_connection(("127.0.0.1", 8080), timeout=LIMIT_SEC)
            served, _ = server.accept()
            served.close()  # the server's side closes first and lingers in TIME_WAIT
            client.close()
            server.close()
            return Path("/proc/thread-self/net/tcp").read_text()

        lingering = await asyncio.to_thread(inside, network.netns_path, serve_and_abandon)
        assert ":1F90" in lingering  # the control: something does linger on port 8080
        await network.release()


async def test_ipv6_is_closed(networks: SandboxNetworks) -> None:
    network = await networks.acquire(PUBLIC, "one")
    assert network.netns_path is not None

    def addresses() -> str:
        return Path("/proc/thread-self/net/if_inet6").read_text()

    assert "eth0" not in await asyncio.to_thread(inside, network.netns_path, addresses)
    quad_a = await asyncio.to_thread(look_up, network.netns_path, network.resolv_conf, "web.example", kind=28)
    assert quad_a == []
    assert await named(network, "web.example") == [WEB]
    with pytest.raises(Unsupported, match="IPv6"):
        await network.apply(allow("2001:db8::1"))


async def test_the_machines_own_network_only_where_it_is_allowed(
    networks: SandboxNetworks, options: SandboxOptions
) -> None:
    with pytest.raises(InvalidInput, match="ALLOW_HOST_NETWORK"):
        await networks.host("one")
    async with SandboxNetworks(options.model_copy(update={"allow_host_network": True})) as allowed:
        network = await allowed.host("one")
        assert network.netns_path is None
        await network.apply(PUBLIC)
        with pytest.raises(Unsupported, match="no-network"):
            await network.apply(NONE)
        await network.release()


def _is_apart(pid: int) -> bool:
    return os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/thread-self/ns/net")
