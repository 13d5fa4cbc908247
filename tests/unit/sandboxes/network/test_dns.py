"""The name service's messages and the resolver in front of it, with servers of our own on the loopback."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.sandboxes.network import dns
from seatrial.sandboxes.network.names import MachineNames, parse_hosts, parse_search, parse_servers
from seatrial.sandboxes.network.resolver import Resolver
from tests.waiting import LIMIT_SEC, eventually

SANDBOX = IPv4Address("198.18.0.3")
ANSWER = [dns.Address(IPv4Address("203.0.113.10"), 60)]


def query(name: str, kind: int = dns.A, number: int = 7) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def test_a_question_and_its_answer() -> None:
    question = dns.read_question(query("Web.Example"))
    assert (question.name, question.kind, question.number) == ("web.example", dns.A, 7)
    reply = dns.answer(question, addresses=ANSWER)
    assert dns.read_answer(reply, question) == ANSWER
    assert dns.result(dns.answer(question, dns.REFUSED)) == dns.REFUSED
    assert dns.renumbered(reply, 9)[:2] == b"\0\x09"


def test_an_alias_in_front_of_the_address_is_followed() -> None:
    question = dns.read_question(query("web.example"))
    alias = b"\xc0\x0c" + struct.pack("!HHIH", 5, 1, 60, 4) + b"\x01a\xc0\x10"
    address = b"\x01a\xc0\x10" + struct.pack("!HHIH", 1, 1, 30, 4) + ANSWER[0].value.packed
    head = struct.pack("!HHHHHH", 7, 0x8180, 1, 2, 0, 0)
    assert dns.read_answer(head + question.raw + alias + address, question) == [dns.Address(ANSWER[0].value, 30)]


def test_the_answer_to_another_question_is_refused() -> None:
    asked, other = dns.read_question(query("web.example")), dns.read_question(query("other.example"))
    with pytest.raises(dns.Malformed):
        dns.read_answer(dns.answer(other, addresses=ANSWER), asked)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        query("web.example")[:20],
        query("web.example")[:2] + b"\x81" + query("web.example")[3:],  # an answer
        query("web.example")[:4] + b"\0\x02" + query("web.example")[6:],  # two questions
        query("x")[:12] + b"\xc0\x0c" + query("x")[-4:],  # a name that leads to itself
        query("x")[:12] + b"\x3fx" * 200,
        query("x")[:12] + b"\xc0",
    ],
    ids=["nothing", "cut off", "answer", "two questions", "loop", "long", "half a pointer"],
)
def test_messages_that_are_none(message: bytes) -> None:
    with pytest.raises(dns.Malformed):
        dns.read_question(message)


def test_a_dot_inside_a_label_is_not_the_end_of_one() -> None:
    raw = query("x")[:12] + b"\x0bweb.example" + b"\0" + query("x")[-4:]
    assert dns.read_question(raw).name != "web.example"


@given(st.binary(max_size=300))
def test_no_message_breaks_the_reader(data: bytes) -> None:
    question = dns.read_question(query("web.example"))
    for read in (dns.read_question, lambda message: dns.read_answer(message, question)):
        for message in (data, query("a")[:12] + data, dns.answer(question, addresses=ANSWER)[:-6] + data):
            try:
                read(message)
            except dns.Malformed:
                continue


class AskingSandbox:
    """A sandbox that may know some names."""

    def __init__(self, *names: str) -> None:
        self.names = set(names)
        self.told: list[tuple[str, list[dns.Address]]] = []

    def admits(self, name: str) -> bool:
        return name in self.names

    def learned(self, name: str, addresses: Sequence[dns.Address]) -> None:
        self.told.append((name, list(addresses)))


class NameService(asyncio.DatagramProtocol):
    """Answers as it is told, and forges answers beforehand if it is told so."""

    def __init__(self, reply: Callable[[bytes], list[bytes]]) -> None:
        self._reply = reply
        self.asked: list[str] = []
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.DatagramTransport)
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.asked.append(dns.read_question(data).name)
        assert self._transport is not None
        for reply in self._reply(data):
            self._transport.sendto(reply, addr)


@asynccontextmanager
async def service(reply: Callable[[bytes], list[bytes]]) -> AsyncIterator[tuple[NameService, int]]:
    transport, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: NameService(reply), local_addr=("127.0.0.1", 0)
    )
    try:
        yield protocol, transport.get_extra_info("sockname")[1]
    finally:
        transport.close()


def known(data: bytes) -> list[bytes]:
    return [dns.answer(dns.read_question(data), addresses=ANSWER)]


def machine(folder: Path, servers: str = "nameserver 127.0.0.1\n", hosts: str = "") -> MachineNames:
    (folder / "resolv.conf").write_text(servers)
    (folder / "hosts").write_text(hosts)
    return MachineNames(folder / "resolv.conf", folder / "hosts")


async def library(name: str) -> Sequence[IPv4Address]:
    if name == "pinned.example":
        return [IPv4Address("127.0.0.1"), IPv4Address("203.0.113.99")]
    raise OSError("not known")


def patient(names: MachineNames, client: Callable[[IPv4Address], AskingSandbox | None], port: int) -> Resolver:
    """Sends no question twice because the machine is busy."""
    return Resolver(names, client, port=port, library=library, patience_sec=LIMIT_SEC)


async def test_the_sandbox_is_told_before_it_gets_the_answer(tmp_path: Path) -> None:
    sandbox = AskingSandbox("web.example")
    async with service(known) as (server, port):
        resolver = patient(machine(tmp_path), {SANDBOX: sandbox}.get, port)
        reply = await resolver.resolve(query("web.example", number=42), SANDBOX)
        assert reply is not None
        assert reply[:2] == b"\0\x2a"
        assert sandbox.told == [("web.example", ANSWER)]

        refused = await resolver.resolve(query("other.example"), SANDBOX)
        assert refused is not None
        assert dns.result(refused) == dns.REFUSED
        assert await resolver.resolve(query("web.example"), IPv4Address("198.18.0.4")) is None
        assert await resolver.resolve(b"nonsense", SANDBOX) is None
        assert server.asked == ["web.example"]


async def test_a_forged_answer_is_not_believed(tmp_path: Path) -> None:
    forged = [dns.Address(IPv4Address("203.0.113.66"), 60)]

    def reply(data: bytes) -> list[bytes]:
        question = dns.read_question(data)
        wrong_number = dns.renumbered(dns.answer(question, addresses=forged), question.number ^ 1)
        wrong_name = dns.answer(dns.read_question(query("x.example", number=question.number)), addresses=forged)
        return [b"", wrong_number, wrong_name, *known(data)]

    sandbox = AskingSandbox("web.example")
    async with service(reply) as (_, port):
        resolver = patient(machine(tmp_path), {SANDBOX: sandbox}.get, port)
        await resolver.resolve(query("web.example"), SANDBOX)
    assert sandbox.told == [("web.example", ANSWER)]


async def test_a_policy_that_changes_meanwhile_counts(tmp_path: Path) -> None:
    sandbox = AskingSandbox("web.example")

    def reply(data: bytes) -> list[bytes]:
        sandbox.names.clear()
        return known(data)

    async with service(reply) as (_, port):
        resolver = patient(machine(tmp_path), {SANDBOX: sandbox}.get, port)
        late = await resolver.resolve(query("web.example"), SANDBOX)
    assert late is not None
    assert dns.result(late) == dns.REFUSED
    assert sandbox.told == []


async def test_when_no_server_answers_the_c_library_is_asked(tmp_path: Path) -> None:
    sandbox = AskingSandbox("pinned.example", "gone.example")
    for servers in ("", "nameserver 127.0.0.1\n"):
        async with service(lambda data: []) as (_, port):
            resolver = Resolver(
                machine(tmp_path, servers), {SANDBOX: sandbox}.get, port=port, library=library, patience_sec=0.05
            )
            reply = await resolver.resolve(query("pinned.example"), SANDBOX)
            assert reply is not None
            found = dns.read_answer(reply, dns.read_question(query("pinned.example")))
            assert [str(address.value) for address in found] == ["203.0.113.99"]
            lost = await resolver.resolve(query("gone.example"), SANDBOX)
            assert lost is not None
            assert dns.result(lost) == dns.SERVER_FAILURE


async def test_one_sandbox_cannot_keep_the_resolver_busy(tmp_path: Path) -> None:
    names = [f"n{number}.example" for number in range(300)]
    loud, quiet = AskingSandbox(*names), AskingSandbox("web.example")
    clients = {SANDBOX: loud, IPv4Address("198.18.0.4"): quiet}
    async with service(lambda data: known(data) if b"web" in data else []) as (server, port):
        resolver = patient(machine(tmp_path), clients.get, port)
        flood = [asyncio.create_task(resolver.resolve(query(name), SANDBOX)) for name in names]
        await eventually(lambda: len(set(server.asked)) >= 128, "128 questions passed on")
        assert await resolver.resolve(query("web.example"), IPv4Address("198.18.0.4")) is not None
        assert [task.result() for task in flood if task.done()] == [None] * (300 - 128)
        assert len({name for name in server.asked if name != "web.example"}) == 128
        resolver.close()
        await asyncio.gather(*flood, return_exceptions=True)


async def test_what_many_ask_at_once_is_passed_on_once(tmp_path: Path) -> None:
    sandboxes = {IPv4Address(f"198.18.0.{last}"): AskingSandbox("web.example", "no.example") for last in range(3, 53)}

    def reply(data: bytes) -> list[bytes]:
        return known(data) if b"web" in data else [dns.answer(dns.read_question(data), dns.NO_SUCH_NAME)]

    async with service(reply) as (server, port):
        resolver = patient(machine(tmp_path), sandboxes.get, port)
        for _ in range(2):  # the second time from memory
            replies = await asyncio.gather(
                *(
                    resolver.resolve(query("web.example", number=int(who) & 0xFFFF), who)
                    for who in sandboxes
                    if int(who) % 2
                ),
                *(resolver.resolve(query("web.example", number=9), who) for who in sandboxes if not int(who) % 2),
            )
            assert all(reply is not None and dns.result(reply) == dns.NO_ERROR for reply in replies)
        assert server.asked == ["web.example"]
        assert all(sandbox.told == [("web.example", ANSWER)] * 2 for sandbox in sandboxes.values())
        first = next(iter(sandboxes))
        for _ in range(2):  # what is not found is asked for again
            await resolver.resolve(query("no.example"), first)
            await asyncio.sleep(0)
        assert server.asked == ["web.example", "no.example", "no.example"]
        resolver.close()


async def test_a_lost_datagram_is_sent_again(tmp_path: Path) -> None:
    lost: list[bytes] = []

    def reply(data: bytes) -> list[bytes]:
        lost.append(data)
        return known(data) if len(lost) > 2 else []

    sandbox = AskingSandbox("web.example")
    async with service(reply) as (_, port):
        resolver = Resolver(machine(tmp_path), {SANDBOX: sandbox}.get, port=port, library=library, patience_sec=2.0)
        await resolver.resolve(query("web.example"), SANDBOX)
    assert sandbox.told == [("web.example", ANSWER)]


def test_files_of_the_machine(tmp_path: Path) -> None:
    assert parse_servers("# x\nnameserver 10.0.0.1\nnameserver ::1\nnameserver\nnameserver bad\n") == (
        "10.0.0.1",
        "::1",
    )
    assert parse_search("domain a.example\nsearch b.example c.example\n") == ("b.example", "c.example")
    assert parse_hosts("127.0.1.1 me\n::1 me6\n10.0.0.9 Mirror mirror.example. # no\nbroken\n10.0.0.8 mirror\n") == {
        "mirror": (IPv4Address("10.0.0.9"), IPv4Address("10.0.0.8")),
        "mirror.example": (IPv4Address("10.0.0.9"),),
    }
    names = machine(tmp_path, hosts="203.0.113.1 a.example\n")
    assert names.in_hosts_file("a.example") == (IPv4Address("203.0.113.1"),)
    (tmp_path / "hosts").unlink()
    assert names.in_hosts_file("a.example") == ()
