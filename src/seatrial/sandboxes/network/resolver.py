"""The name server of the sandboxes, and where it gets its answers.

It listens on the router's address, so that a sandbox needs no way to the machine's own resolver, which may listen on
the loopback or at a private address. The packet filter checks source addresses, so the source of a question says which
sandbox asks. ``network`` supplies the clients, ``limits`` says what one sandbox may use.

Answers are those that a program of this machine would get: from its hosts file, then from the resolvers of its
resolv.conf, and if none of them answers, from the C library. A sandbox has no IPv6, so questions for such addresses get
an empty answer at once. Hundreds of sandboxes often ask the same question at the same time, so it is forwarded once,
and the answer is kept for some seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from ipaddress import IPv4Address
from typing import Protocol, override

from seatrial.sandboxes.network import dns
from seatrial.sandboxes.network.limits import NetworkLimits
from seatrial.sandboxes.network.names import MachineNames

_LOG = logging.getLogger(__name__)

_PATIENCE_SEC = 3.0
_ROUNDS = 2
_LOOKUP_SEC = 10.0
_STREAM_IDLE_SEC = 30.0
_OWN_TTL = 60
_LONGEST_KEPT_SEC = 15
_MOST_KEPT = 4096
_SENDINGS = 4
"""How often a datagram is sent before the server counts as silent. Some datagrams get lost."""
_STREAM_PACE_SEC = 0.02
"""Between two questions on one connection, because the packet filter does not limit streams."""


class Client(Protocol):
    """A sandbox that asks."""

    def admits(self, name: str) -> bool:
        """Whether it may look up that name."""
        ...

    def learned(self, name: str, addresses: Sequence[dns.Address]) -> None:
        """Called before the answer is sent, so that the addresses are reachable when the answer arrives."""
        ...


class Resolver:
    """Answers questions of clients."""

    def __init__(
        self,
        names: MachineNames,
        client: Callable[[IPv4Address], Client | None],
        *,
        library: Callable[[str], Awaitable[Sequence[IPv4Address]]] | None = None,
        port: int = 53,
        patience_sec: float = _PATIENCE_SEC,
        limits: NetworkLimits | None = None,
    ) -> None:
        self._names = names
        self._client = client
        self._library = library or ask_library
        self._port = port
        self._patience_sec = patience_sec
        self.limits = limits or NetworkLimits()
        self._busy: Counter[IPv4Address] = Counter()
        self._kept: Counter[IPv4Address] = Counter()
        """Number of kept answers for each sandbox that was the first to ask."""
        self._known: dict[tuple[bytes, bool], asyncio.Task[bytes]] = {}
        """Lookups that run or ended a moment ago, by question without its number."""

    def close(self) -> None:
        for task in self._known.values():
            task.cancel()
        self._known.clear()

    async def resolve(self, message: bytes, source: IPv4Address, *, stream: bool = False) -> bytes | None:
        """The answer to a message of a sandbox. ``None`` means that it gets no answer."""
        client = self._client(source)
        if client is None or self._busy[source] >= self.limits.questions_at_once:
            return None
        if len(message) > self.limits.question_bytes:
            return None
        try:
            question = dns.read_question(message)
        except dns.Malformed:
            return None
        if not client.admits(question.name):
            return dns.answer(question, dns.REFUSED)
        if question.kind == dns.AAAA:
            return dns.answer(question)
        with _counted(self._busy, source):
            try:
                reply = dns.renumbered(await self._shared(message, question, stream, source), question.number)
                if not client.admits(question.name):  # its policy changed meanwhile
                    return dns.answer(question, dns.REFUSED)
                client.learned(question.name, dns.read_answer(reply, question))
            except dns.Malformed:
                return dns.answer(question, dns.SERVER_FAILURE)
            return reply

    async def _shared(self, message: bytes, question: dns.Question, stream: bool, source: IPv4Address) -> bytes:
        key = (message[2:], stream)
        task = self._known.get(key)
        if task is None:
            task = self._known[key] = asyncio.create_task(self._look_up(message, question, stream))
            task.add_done_callback(lambda done: self._keep_answer(key, done, question, source))
        return await asyncio.shield(task)

    def _keep_answer(
        self, key: tuple[bytes, bool], task: asyncio.Task[bytes], question: dns.Question, source: IPv4Address
    ) -> None:
        """Keeps addresses while all of them are valid, for some seconds at most. Keeps no other answer."""
        found: list[dns.Address] = []
        room = len(self._known) < _MOST_KEPT and self._kept[source] < self.limits.answers_kept
        if not task.cancelled() and task.exception() is None and room:
            found = dns.read_answer(task.result(), question)
        seconds = min((address.ttl for address in found), default=0)
        self._kept[source] += 1
        if seconds:
            task.get_loop().call_later(min(seconds, _LONGEST_KEPT_SEC), self._forget, key, task, source)
        else:
            self._forget(key, task, source)

    def _forget(self, key: tuple[bytes, bool], task: asyncio.Task[bytes], source: IPv4Address) -> None:
        _count_down(self._kept, source)
        if self._known.get(key) is task:
            del self._known[key]

    async def _look_up(self, message: bytes, question: dns.Question, stream: bool) -> bytes:
        if question.kind == dns.A and (fixed := self._names.in_hosts_file(question.name)):
            return dns.answer(question, addresses=[dns.Address(value, _OWN_TTL) for value in fixed])
        ask = self._ask_stream if stream else self._ask_datagram
        for _ in range(_ROUNDS):
            for server in self._names.servers:
                try:
                    async with asyncio.timeout(self._patience_sec):
                        reply = await ask(server, message, question)
                except (OSError, TimeoutError, asyncio.IncompleteReadError, dns.Malformed) as error:
                    _LOG.debug("The resolver %s did not answer for %s: %r", server, question.name, error)
                    continue
                if dns.result(reply) not in (dns.SERVER_FAILURE, dns.REFUSED, dns.NOT_IMPLEMENTED):
                    return reply
        return await self._ask_library(question)

    async def _ask_datagram(self, server: str, message: bytes, question: dns.Question) -> bytes:
        """Uses a new socket each time, so that an attacker would have to guess its port and the number."""
        loop = asyncio.get_running_loop()
        number = secrets.randbits(16)
        family = socket.AF_INET6 if ":" in server else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as endpoint:
            endpoint.connect((server, self._port))
            for _ in range(_SENDINGS):
                await loop.sock_sendall(endpoint, dns.renumbered(message, number))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._patience_sec / _SENDINGS):
                        while True:  # until the right answer comes; all others are ignored
                            reply = await loop.sock_recv(endpoint, 65535)
                            with contextlib.suppress(dns.Malformed):
                                return _checked(reply, number, question)
        raise TimeoutError

    async def _ask_stream(self, server: str, message: bytes, question: dns.Question) -> bytes:
        number = secrets.randbits(16)
        reader, writer = await asyncio.open_connection(server, self._port)
        try:
            writer.write(_framed(dns.renumbered(message, number)))
            return _checked(await _read_frame(reader), number, question)
        finally:
            writer.close()

    async def _ask_library(self, question: dns.Question) -> bytes:
        if question.kind != dns.A:
            return dns.answer(question, dns.SERVER_FAILURE)
        try:
            async with asyncio.timeout(_LOOKUP_SEC):
                found = await self._library(question.name)
        except (OSError, UnicodeError, TimeoutError):
            return dns.answer(question, dns.SERVER_FAILURE)
        return dns.answer(
            question, addresses=[dns.Address(value, _OWN_TTL) for value in found if not value.is_loopback]
        )


async def ask_library(name: str) -> Sequence[IPv4Address]:
    """What the C library finds, with this machine's settings."""
    found = await asyncio.get_running_loop().getaddrinfo(name, None, family=socket.AF_INET, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(IPv4Address(place[4][0]) for place in found))


class NameServer:
    """Takes questions from two sockets, from ``start`` to ``close``."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._tasks: set[asyncio.Task[None]] = set()
        self._streams: Counter[IPv4Address] = Counter()
        self._transport: asyncio.DatagramTransport | None = None
        self._server: asyncio.Server | None = None

    async def start(self, datagrams: socket.socket, streams: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: _Listener(self._receive), sock=datagrams)
        self._server = await asyncio.start_server(self._serve, sock=streams)

    async def close(self) -> None:
        self._resolver.close()
        if self._transport is not None:
            self._transport.close()
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _receive(self, message: bytes, source: tuple[str, int]) -> None:
        self._track(asyncio.ensure_future(self._answer(message, source)))

    async def _answer(self, message: bytes, source: tuple[str, int]) -> None:
        reply = await self._resolver.resolve(message, IPv4Address(source[0]))
        if reply is not None and self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(reply, source)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._track(task)
        source = IPv4Address(writer.get_extra_info("peername")[0])
        try:
            with _counted(self._streams, source):
                if self._streams[source] <= self._resolver.limits.question_streams:
                    await self._answer_stream(reader, writer, source)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return
        except asyncio.CancelledError:  # by ``close``; asyncio's streams would log it as an error
            return
        finally:
            writer.close()

    async def _answer_stream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: IPv4Address
    ) -> None:
        while True:
            async with asyncio.timeout(_STREAM_IDLE_SEC):
                message = await _read_frame(reader, self._resolver.limits.question_bytes)
            reply = await self._resolver.resolve(message, source, stream=True)
            if reply is None:
                return
            writer.write(_framed(reply))
            async with asyncio.timeout(_STREAM_IDLE_SEC):
                await writer.drain()
            await asyncio.sleep(_STREAM_PACE_SEC)

    def _track(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("A sandbox's question could not be answered.", exc_info=error)


class _Listener(asyncio.DatagramProtocol):
    def __init__(self, receive: Callable[[bytes, tuple[str, int]], None]) -> None:
        self._receive = receive

    @override
    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._receive(data, addr)


@contextlib.contextmanager
def _counted(counter: Counter[IPv4Address], source: IPv4Address) -> Iterator[None]:
    counter[source] += 1
    try:
        yield
    finally:
        _count_down(counter, source)


def _count_down(counter: Counter[IPv4Address], source: IPv4Address) -> None:
    """Removes the last entry of an address, so that addresses of removed sandboxes take no memory."""
    counter[source] -= 1
    if counter[source] <= 0:
        del counter[source]


def _checked(reply: bytes, number: int, question: dns.Question) -> bytes:
    """The reply, unless it answers another question."""
    if len(reply) < 2 or struct.unpack_from("!H", reply)[0] != number:
        raise dns.Malformed("the answer to another question")
    dns.read_answer(reply, question)
    return reply


def _framed(message: bytes) -> bytes:
    return struct.pack("!H", len(message)) + message


async def _read_frame(reader: asyncio.StreamReader, most: int = 65535) -> bytes:
    (length,) = struct.unpack("!H", await reader.readexactly(2))
    if length > most:
        raise asyncio.IncompleteReadError(b"", length)
    return await reader.readexactly(length)
