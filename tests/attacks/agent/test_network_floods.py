"""A sandbox that floods what it shares with others: names, connections, neighbours. The one beside it goes on.

The first half runs in a small world (see ``tests.integration.network.world``), where the machine's own tables can be
looked at; the last test has real sandboxes of both kinds.
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from harbor.models.task.config import NetworkPolicy

from seatrial.sandboxes.network import dns
from seatrial.sandboxes.network.limits import NetworkLimits
from seatrial.sandboxes.network.names import MachineNames
from seatrial.sandboxes.network.network import SandboxNetwork
from seatrial.sandboxes.network.network_set import SandboxNetworks
from seatrial.sandboxes.network.resolver import Resolver
from seatrial.sandboxes.options import SandboxOptions
from tests.engine_fixture import container_engine, image_cache, run_dir
from tests.integration.network.world import WEB, World, in_thread, inside, look_up, reaches, run, world
from tests.trials import Workplace
from tests.waiting import LIMIT_SEC, eventually

__all__ = ["container_engine", "image_cache", "run_dir"]

pytestmark = pytest.mark.sandbox

LIMITS = NetworkLimits(
    connections=50,
    new_connections_per_sec=20,
    new_connections_burst=200,
    questions_per_sec=50,
    questions_burst=100,
    question_streams=4,
    crowded=0,
)


@pytest.fixture
def surroundings(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


@pytest.fixture
async def networks(surroundings: World, tmp_path: Path) -> AsyncIterator[SandboxNetworks]:
    async with SandboxNetworks(SandboxOptions(cache=tmp_path), names=surroundings.names, limits=LIMITS) as made:
        yield made


@pytest.fixture
async def pair(networks: SandboxNetworks) -> tuple[SandboxNetwork, SandboxNetwork]:
    """The one that floods, and the one beside it."""
    return await networks.acquire(NetworkPolicy(), "flooder"), await networks.acquire(NetworkPolicy(), "neighbour")


def namespace(network: SandboxNetwork) -> Path:
    assert network.netns_path is not None
    return network.netns_path


async def fares_well(network: SandboxNetwork) -> bool:
    """Whether a sandbox gets names, by both ways, and connections."""

    def check() -> bool:
        where, conf = namespace(network), network.resolv_conf
        names = [look_up(where, conf, "web.example", stream=stream) for stream in (False, True)]
        return names == [[WEB], [WEB]] and reaches(where, WEB, timeout=LIMIT_SEC)

    return await asyncio.to_thread(check)


def tracked() -> int:
    """Entries in the machine's table of connections."""
    return in_thread(lambda: int(Path("/proc/sys/net/netfilter/nf_conntrack_count").read_text()))


def connect_many(
    where: Path, address: str, number: int, *, close: bool = False
) -> tuple[list[socket.socket], set[str]]:
    """Connections that were made, and the kinds of error that the others met."""

    def connect() -> tuple[list[socket.socket], set[str]]:
        made, errors = [], set()
        for _ in range(number):
            try:
                connection = socket.create_connection((address, 80), timeout=LIMIT_SEC)
            except OSError as error:
                errors.add(type(error).__name__)
                continue
            made.append(connection)
            if close:
                connection.close()
        return made, errors

    return inside(where, connect)


async def test_honest_sandboxes_stay_below_the_limits(pair: tuple[SandboxNetwork, SandboxNetwork]) -> None:
    made, errors = await asyncio.to_thread(connect_many, namespace(pair[0]), WEB, 40)
    assert len(made) == 40 and not errors
    for connection in made:
        connection.close()
    assert await fares_well(pair[0]) and await fares_well(pair[1])


async def test_open_connections_are_limited(pair: tuple[SandboxNetwork, SandboxNetwork]) -> None:
    made, errors = await asyncio.to_thread(connect_many, namespace(pair[0]), WEB, 120)
    assert len(made) == LIMITS.connections and errors == {"ConnectionRefusedError"}
    assert await fares_well(pair[1])
    for connection in made:
        connection.close()


async def test_open_connections_keep_working_beside_refused_ones(pair: tuple[SandboxNetwork, SandboxNetwork]) -> None:
    made, _ = await asyncio.to_thread(connect_many, namespace(pair[0]), WEB, 60)

    def echo(connection: socket.socket) -> bytes:
        connection.recv(100)
        connection.sendall(b"still here")
        return connection.recv(100)

    assert await asyncio.to_thread(echo, made[0]) == b"still here"
    for connection in made:
        connection.close()


async def test_a_storm_of_short_connections_is_slowed(pair: tuple[SandboxNetwork, SandboxNetwork]) -> None:
    """Each leaves an entry in the machine's table for two minutes after its end."""
    made, errors = await asyncio.to_thread(connect_many, namespace(pair[0]), WEB, 1500, close=True)
    assert errors == {"ConnectionRefusedError"}
    assert len(made) < 1500
    assert await fares_well(pair[1])


async def test_the_next_sandbox_at_the_same_address_does_not_pay(networks: SandboxNetworks) -> None:
    flooder = await networks.acquire(NetworkPolicy(), "flooder")
    await asyncio.to_thread(connect_many, namespace(flooder), WEB, 1500, close=True)
    address = flooder.hosts.split()[-2]
    counted = _counters(networks)
    assert address in counted["begun"] and address in counted["counted"]
    await flooder.release()
    assert not any(address in elements for elements in _counters(networks).values())


async def test_connections_that_a_sandbox_left_do_not_stay_in_the_machines_table(
    networks: SandboxNetworks, pair: tuple[SandboxNetwork, SandboxNetwork]
) -> None:
    left, _ = await asyncio.to_thread(connect_many, namespace(pair[0]), WEB, 40)
    kept, _ = await asyncio.to_thread(connect_many, namespace(pair[1]), WEB, 5)
    assert tracked() >= 45
    await pair[0].release()
    await networks.sweep()
    assert 5 <= tracked() < 40
    for connection in kept:
        connection.sendall(b"still here")
        assert b"greets" in connection.recv(100)
    for connection in [*left, *kept]:
        connection.close()


@pytest.mark.parametrize("kind", ["datagrams", "half-open"])
async def test_the_machines_table_of_connections_does_not_fill(
    pair: tuple[SandboxNetwork, SandboxNetwork], kind: str
) -> None:
    def flood() -> None:
        if kind == "datagrams":
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                for port in range(10_000, 13_000):
                    _send(sender, b"x", (WEB, port))
            return
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as sender:
            for port in range(10_000, 13_000):  # 203.0.113.99 is nobody's, so nothing answers
                _send(sender, _syn(pair[0].hosts.split()[-2], "203.0.113.99", port), ("203.0.113.99", 0))

    before = tracked()
    await asyncio.to_thread(inside, namespace(pair[0]), flood)
    assert tracked() - before <= LIMITS.connections + 20
    assert await fares_well(pair[1])


async def test_a_flood_of_questions_is_dropped(
    pair: tuple[SandboxNetwork, SandboxNetwork], surroundings: World
) -> None:
    server = pair[0].resolv_conf.split()[1]

    def flood() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number in range(20_000):
                _send(sender, _question(f"n{number}.flood.example"), (server, 53))

    await asyncio.to_thread(inside, namespace(pair[0]), flood)
    assert await fares_well(pair[1])
    heard = sum(name.endswith("flood.example") for name in surroundings.asked)
    assert 0 < heard < 10_000


async def test_connections_to_the_name_server_are_limited(pair: tuple[SandboxNetwork, SandboxNetwork]) -> None:
    server = pair[0].resolv_conf.split()[1]

    def hold() -> list[socket.socket]:
        return [socket.create_connection((server, 53), timeout=LIMIT_SEC) for _ in range(20)]

    held = await asyncio.to_thread(inside, namespace(pair[0]), hold)
    assert await fares_well(pair[1])
    await eventually(lambda: len(_closed(held)) >= 20 - LIMITS.question_streams, "those beyond the limit are closed")
    assert await fares_well(pair[1])
    assert len(_closed(held)) == 20 - LIMITS.question_streams
    for connection in held:
        connection.close()


def _closed(connections: list[socket.socket]) -> list[socket.socket]:
    """Those that the other side ended: nobody sends anything, so only an end can be read."""
    return select.select(connections, [], [], 0)[0]


async def test_an_oversized_question_ends_its_connection_only(pair: tuple[SandboxNetwork, SandboxNetwork]) -> None:
    server = pair[0].resolv_conf.split()[1]

    def ask() -> bytes:
        with socket.create_connection((server, 53), timeout=LIMIT_SEC) as connection:
            connection.sendall(struct.pack("!H", 60_000) + _question("web.example"))
            return connection.recv(100)

    assert await asyncio.to_thread(inside, namespace(pair[0]), ask) == b""
    assert await fares_well(pair[0]) and await fares_well(pair[1])


async def test_made_up_neighbours_do_not_fill_the_machines_table(
    networks: SandboxNetworks, pair: tuple[SandboxNetwork, SandboxNetwork]
) -> None:
    """The table has 1024 places for all namespaces of the machine."""
    server = pair[0].resolv_conf.split()[1]

    def shout() -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806)) as line:
            line.bind(("eth0", 0))
            mac = line.getsockname()[4]
            for number in range(400):
                sender = socket.inet_aton(f"203.0.{number // 250}.{number % 250 + 1}")
                asked = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + mac + sender + b"\0" * 6 + socket.inet_aton(server)
                line.send(b"\xff" * 6 + mac + b"\x08\x06" + asked)

    await asyncio.to_thread(inside, namespace(pair[0]), shout)
    assert await fares_well(pair[1])
    router = networks._router
    assert router is not None and router.namespace is not None
    assert run(f"nsenter --net={router.namespace.path} ip -4 neighbour show").count("203.0.") == 0


async def test_one_sandbox_does_not_fill_the_cache_of_names(tmp_path: Path) -> None:
    """Whoever comes later still has its answers kept."""
    (tmp_path / "hosts").write_text("".join(f"203.0.113.1 n{number}.example\n" for number in range(6000)))
    (tmp_path / "resolv.conf").write_text("")
    looked_up = []

    async def library(name: str) -> Sequence[IPv4Address]:
        looked_up.append(name)
        return [IPv4Address(WEB)]

    class Anybody:
        def admits(self, name: str) -> bool:
            return True

        def learned(self, name: str, addresses: Sequence[dns.Address]) -> None:
            return None

    names = MachineNames(tmp_path / "resolv.conf", tmp_path / "hosts")
    resolver = Resolver(names, lambda _source: Anybody(), library=library)
    flooder, neighbour = IPv4Address("198.18.0.3"), IPv4Address("198.18.0.4")
    for number in range(6000):
        assert await resolver.resolve(_question(f"n{number}.example"), flooder) is not None
    for _ in range(3):
        assert await resolver.resolve(_question("web.example"), neighbour) is not None
    resolver.close()
    assert looked_up == ["web.example"]


FLOOD = """use Socket; socket(S, PF_INET, SOCK_DGRAM, 17); my $to = sockaddr_in(53, inet_aton($ARGV[0]));
my $got = 0; my $b = ""; for my $n (1 .. 30000) { my $name = "n$n";
send(S, pack("nnnnnn", $n, 256, 1, 0, 0, 0) . chr(length $name) . $name . "\\7example\\0" . pack("nn", 28, 1), 0, $to);
$got++ while defined recv(S, $b, 512, MSG_DONTWAIT); }
my $r = ""; vec($r, fileno(S), 1) = 1; select($r, undef, undef, $got ? 1 : 180);
$got++ while defined recv(S, $b, 512, MSG_DONTWAIT); print "answered $got\\n";"""
ASK = """use Socket; socket(S, PF_INET, SOCK_DGRAM, 17); my $to = sockaddr_in(53, inet_aton($ARGV[0])); my $b = "";
for (1 .. 180) { send(S, pack("nnnnnn", 7, 256, 1, 0, 0, 0) . "\\3web\\7example\\0" . pack("nn", 28, 1), 0, $to);
my $r = ""; vec($r, fileno(S), 1) = 1; if (select($r, undef, undef, 1)) { recv(S, $b, 512, 0); print "yes\\n"; exit } }
print "no\\n";"""


@pytest.mark.parametrize(
    "kind", [pytest.param("oci", marks=pytest.mark.sandbox), pytest.param("docker", marks=pytest.mark.engine)]
)
async def test_names_work_beside_a_sandbox_that_floods(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, image_cache: Path
) -> None:
    engine = request.getfixturevalue("container_engine") if kind == "docker" else None
    place = Workplace(tmp_path, image_cache, engine)
    flooder, neighbour = place.sandbox(network=NetworkPolicy()), place.sandbox(network=NetworkPolicy())
    await asyncio.gather(flooder.start(force_build=False), neighbour.start(force_build=False))
    try:
        server = "$(awk '/^nameserver/ {print $2; exit}' /etc/resolv.conf)"
        flooding = asyncio.create_task(flooder.exec(f"perl -e '{FLOOD}' {server}"))
        for _ in range(5):
            assert (await neighbour.exec(f"perl -e '{ASK}' {server}")).stdout == "yes\n"
        said = (await flooding).stdout or ""
        assert 0 < int(said.split()[1]) < 20_000
    finally:
        await asyncio.gather(flooder.stop(delete=True), neighbour.stop(delete=True))


def _counters(networks: SandboxNetworks) -> dict[str, str]:
    """What the router counts for its sandboxes."""
    router = networks._router
    assert router is not None and router.namespace is not None
    enter = f"nsenter --net={router.namespace.path} nft list set inet seatrial"
    return {name: run(f"{enter} {name}") for name in ("counted", "begun", "asking", "calling", "refused")}


def _send(sender: socket.socket, data: bytes, to: tuple[str, int]) -> None:
    """A refusal that came meanwhile is reported by the next call, and a full queue too."""
    try:
        sender.sendto(data, to)
    except OSError:
        return


def _question(name: str) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!HHHHHH", 4711, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", dns.A, 1)


def _syn(source: str, target: str, port: int) -> bytes:
    head = struct.pack("!HHIIBBHHH", port, 80, 1, 0, 5 << 4, 2, 65535, 0, 0)
    false_head = socket.inet_aton(source) + socket.inet_aton(target) + struct.pack("!BBH", 0, 6, len(head))
    total = sum(struct.unpack(f"!{(len(false_head) + len(head)) // 2}H", false_head + head))
    total = (total >> 16) + (total & 0xFFFF)
    return head[:16] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + head[18:]
