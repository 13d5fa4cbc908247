"""The name server of the sandboxes, and where it gets its answers.

It listens on the router's address, so that a sandbox needs no way to the machine's own resolver (which may sit on the
loopback or at a private address). Who asks is known by the address the question comes from, which the packet filter
vouches for. ``network`` supplies the clients.

Answers come as they would come to a program of this machine: its hosts file first (without loopback entries, which mean
something else inside), then the resolvers of its resolv.conf, and if none of them says anything, whatever the C library
finds. There is no IPv6 in a sandbox, so questions for such addresses get an empty answer at once. Hundreds of sandboxes
often ask the same thing at the same time, so a question is passed on once and its answer kept for some seconds.

What one sandbox may use of it is in ``limits``.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
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
"""How often a datagram is sent before its server is given up; some get lost."""
_STREAM_PACE_SEC = 0.02
"""Between two questions on one connection: a stream is not limited by the packet filter."""


class Client(Protocol):
    """A sandbox that asks."""

    def admits(self, name: str) -> bool:
        """Whether it may know that name."""
        ...

    def learned(self, name: str, addresses: Sequence[dns.Address]) -> None:
        """Told before the answer goes out, so that what it asked for is reachable when the answer arrives."""
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
        """How many of the kept answers each sandbox was the first to ask for."""
        self._known: dict[tuple[bytes, bool], asyncio.Task[bytes]] = {}
        """Questions that are being looked up, or were a moment ago, without their numbers."""

    def close(self) -> None:
        for task in self._known.values():
            task.cancel()
        self._known.clear()

    async def resolve(self, message: bytes, source: IPv4Address, *, stream: bool = False) -> bytes | None:
        """The answer to a message of a sandbox; ``None`` to say nothing."""
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
        self._busy[source] += 1
        try:
            reply = dns.renumbered(await self._shared(message, question, stream, source), question.number)
            if not client.admits(question.name):  # its policy changed meanwhile
                return dns.answer(question, dns.REFUSED)
            client.learned(question.name, dns.read_answer(reply, question))
        except dns.Malformed:
            return dns.answer(question, dns.SERVER_FAILURE)
        finally:
            self._busy[source] -= 1
            if not self._busy[source]:
                del self._busy[source]
        return reply

    async def _shared(self, message: bytes, question: dns.Question, stream: bool, source: IPv4Address) -> bytes:
        key = (message[2:], stream)
        task = self._known.get(key)
        if task is None:
            task = self._known[key] = asyncio.create_task(self._look_up(message, question, stream))
            task.add_done_callback(lambda done: self._keep(key, done, question, source))
        return await asyncio.shield(task)

    def _keep(
        self, key: tuple[bytes, bool], task: asyncio.Task[bytes], question: dns.Question, source: IPv4Address
    ) -> None:
        """For as long as every address in the answer is good, but not long; what is not an address, not at all."""
        found: list[dns.Address] = []
        room = len(self._known) < _MOST_KEPT and self._kept[source] < self.limits.answers_kept
        if not task.cancelled() and task.exception() is None and room:
            found = dns.read_answer(task.result(), question)
        seconds = min((address.ttl for address in found), default=0)
        if seconds == 0:
            self._forget(key, task)
        else:
            self._kept[source] += 1
            task.get_loop().call_later(min(seconds, _LONGEST_KEPT_SEC), self._expire, key, task, source)

    def _expire(self, key: tuple[bytes, bool], task: asyncio.Task[bytes], source: IPv4Address) -> None:
        self._kept[source] -= 1
        if self._kept[source] <= 0:
            del self._kept[source]
        self._forget(key, task)

    def _forget(self, key: tuple[bytes, bool], task: asyncio.Task[bytes]) -> None:
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
        """A new socket each time: whoever wants to forge an answer has to guess its port and number."""
        loop = asyncio.get_running_loop()
        number = secrets.randbits(16)
        transport, waiter = await loop.create_datagram_endpoint(
            lambda: _Waiter(number, question), remote_addr=(server, self._port)
        )
        try:
            for _ in range(_SENDINGS):
                transport.sendto(dns.renumbered(message, number))
                done, _ = await asyncio.wait([waiter.reply], timeout=self._patience_sec / _SENDINGS)
                if done:
                    return waiter.reply.result()
            raise TimeoutError
        finally:
            transport.close()

    async def _ask_stream(self, server: str, message: bytes, question: dns.Question) -> bytes:
        number = secrets.randbits(16)
        reader, writer = await asyncio.open_connection(server, self._port)
        try:
            writer.write(_framed(dns.renumbered(message, number)))
            reply = await _read_frame(reader)
        finally:
            writer.close()
        if len(reply) < 2 or struct.unpack_from("!H", reply)[0] != number:
            raise dns.Malformed("the answer to another question")
        dns.read_answer(reply, question)
        return reply

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
    """What the C library finds, by whatever this machine is set up to ask."""
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
        self._transport, _ = await loop.create_datagram_endpoint(lambda: _Listener(self._hear), sock=datagrams)
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

    def _hear(self, message: bytes, source: tuple[str, int]) -> None:
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
        self._streams[source] += 1
        try:
            if self._streams[source] <= self._resolver.limits.question_streams:
                await self._converse(reader, writer, source)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return
        except asyncio.CancelledError:  # by ``close``; asyncio's streams would report it as an error of theirs
            return
        finally:
            self._streams[source] -= 1
            if not self._streams[source]:
                del self._streams[source]
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: IPv4Address) -> None:
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
    def __init__(self, hear: Callable[[bytes, tuple[str, int]], None]) -> None:
        self._hear = hear

    @override
    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._hear(data, addr)


class _Waiter(asyncio.DatagramProtocol):
    """Waits for the one right answer; others are as if they had not come."""

    def __init__(self, number: int, question: dns.Question) -> None:
        self.reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._number = number
        self._question = question

    @override
    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if self.reply.done() or len(data) < 2 or struct.unpack_from("!H", data)[0] != self._number:
            return
        try:
            dns.read_answer(data, self._question)
        except dns.Malformed:
            return
        self.reply.set_result(data)

    @override
    def error_received(self, exc: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(exc)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.reply.done():
            self.reply.cancel()


def _framed(message: bytes) -> bytes:
    return struct.pack("!H", len(message)) + message


async def _read_frame(reader: asyncio.StreamReader, most: int = 65535) -> bytes:
    (length,) = struct.unpack("!H", await reader.readexactly(2))
    if length > most:
        raise asyncio.IncompleteReadError(b"", length)
    return await reader.readexactly(length)
