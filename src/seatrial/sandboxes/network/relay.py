"""Connects one port of a sandbox's loopback with one model's address.

An agent inside a sandbox calls its model from there. The sandbox may have no way to the model's address, and a task
could read a key. So the relay listens *inside* the sandbox's network namespace and calls the model from *outside*, with
the key, which the sandbox never sees. No firewall is opened: a socket belongs to the namespace in which it was made.

The sandbox may send anything. ``relay_head`` reads it strictly and says which calls are open. ``RelayLimits`` says what
one sandbox may use. Bodies pass in pieces, so that they cannot fill the memory.

``agents.inside`` uses the relay while an agent runs. The runner uses it on this machine if an agent's model address
came from a caller of the service: whatever client the agent has, the relay follows no redirect.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from seatrial.errors import InvalidInput
from seatrial.plain_http import BadRequest, Connections, Response
from seatrial.sandboxes.network.namespace import Namespace, entered
from seatrial.sandboxes.network.relay_head import (
    LONGEST_HEAD,
    AnswerHead,
    RequestHead,
    check_target,
    end_to_end,
    read_answer_head,
    read_request_head,
    written,
)

_NOT_ASKED = frozenset({"content-length", "cookie", "expect", "forwarded", "host", "x-forwarded-for", "x-real-ip"})
_NOT_TOLD = frozenset({"alt-svc", "location", "set-cookie"})
"""Headers of an answer that would make the client use another address or keep state."""
_KEYS = frozenset({"api-key", "authorization", "x-api-key", "x-goog-api-key"})
"""A sandbox has no key, so a value that it sends here is not valid."""
_PIECE = 65536
_LINGER_SEC = 2.0


@dataclass(frozen=True, slots=True)
class RelayLimits:
    """What one sandbox may use of the relay."""

    connections: int = 64
    """Open at once. More are refused with an answer."""
    body_bytes: int = 32 * 1024 * 1024
    connect_sec: float = 30.0
    head_sec: float = 30.0
    idle_sec: float = 900.0
    """Without a byte in either direction. Models may think for long."""
    total_sec: float = 7200.0


class ModelRelay:
    """Serves while it is open. ``calls`` counts the calls passed on, ``refused`` those refused."""

    def __init__(
        self,
        upstream: str,
        namespace: Path | None,
        headers: Mapping[str, str] | None = None,
        *,
        passes_keys: bool = False,
        limits: RelayLimits | None = None,
    ) -> None:
        """``namespace`` is the sandbox's; ``None`` listens on this machine. ``headers`` are added to every call.

        With ``passes_keys`` the caller is trusted and sends the model's key itself."""
        address = urlsplit(upstream)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise InvalidInput(f"{upstream!r} is not the address of a model.", field="api_base")
        self._host = address.hostname
        self._tls = ssl.create_default_context() if address.scheme == "https" else None
        self._port = address.port or (443 if self._tls else 80)
        self._authority = address.netloc.rpartition("@")[2]
        self._base = address.path.rstrip("/")
        self._namespace = namespace
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._dropped = _NOT_ASKED | set(self._headers) | (frozenset() if passes_keys else _KEYS)
        self._limits = limits or RelayLimits()
        self._connections = Connections()
        self._open = 0
        self.calls = 0
        self.refused = 0

    async def __aenter__(self) -> Self:
        # A thread that was in another namespace is not used again.
        with ThreadPoolExecutor(max_workers=1) as threads:
            listener = await asyncio.get_running_loop().run_in_executor(threads, _listen, self._namespace)
        self._server = await asyncio.start_server(self._connected, sock=listener, limit=LONGEST_HEAD)
        self._listens_at = listener.getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        await self._connections.end()

    @property
    def url(self) -> str:
        """The model's address as the sandbox sees it."""
        return f"http://127.0.0.1:{self._listens_at}{self._base}"

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            with self._connections.hold(writer):
                await self._served(reader, writer)
        finally:
            self._open -= 1

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one request for each connection, so that nothing after it can pass unchecked."""
        try:
            async with asyncio.timeout(self._limits.total_sec):
                if self._open > self._limits.connections:
                    raise BadRequest(503, f"More than {self._limits.connections} calls are open at once.")
                head = await self._asked(reader)
                if head is not None:
                    await self._pass_on(head, reader, writer)
        except BadRequest as problem:
            self.refused += 1
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_LINGER_SEC):
                    await _refuse(problem, reader, writer)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()  # the agent closed the connection, was silent, or ran out of time

    async def _asked(self, reader: asyncio.StreamReader) -> RequestHead | None:
        async with asyncio.timeout(self._limits.head_sec):
            head = await read_request_head(reader, self._limits.body_bytes)
        if head is not None:
            check_target(head.method, head.target, self._base)
        return head

    async def _pass_on(self, head: RequestHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._limits.connect_sec):
                answer, question = await asyncio.open_connection(
                    self._host, self._port, ssl=self._tls, limit=LONGEST_HEAD
                )
        except (OSError, TimeoutError) as error:
            raise BadRequest(502, f"The model's address does not answer: {type(error).__name__}.") from error
        self.calls += 1
        try:
            if head.expects_continue:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            question.write(self._question(head))
            await self._carry(reader, question, head.length)
            async with asyncio.timeout(self._limits.idle_sec):
                writer.write(_checked(await read_answer_head(answer)))
            await self._carry(answer, writer, None)
        finally:
            question.transport.abort()

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, length: int | None) -> None:
        """Passes on ``length`` bytes, or all until the end, as fast as the slower side takes them."""
        left = length
        while left is None or left > 0:
            async with asyncio.timeout(self._limits.idle_sec):
                piece = await source.read(_PIECE if left is None else min(_PIECE, left))
                if not piece and left is not None:
                    raise ConnectionResetError("the body ended early")
                if not piece:
                    break
                target.write(piece)
                await target.drain()
            left = None if left is None else left - len(piece)
        await target.drain()

    def _question(self, head: RequestHead) -> bytes:
        fixed = {"host": self._authority, "connection": "close", "content-length": str(head.length)}
        fields = (*end_to_end(head.fields, self._dropped), *self._headers.items(), *fixed.items())
        return written(f"{head.method} {head.target} HTTP/1.1", fields)


async def _refuse(problem: BadRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends the reason, then reads the rest: a close with unread bytes would discard the answer."""
    answer = {"error": {"message": str(problem), "type": "relay"}}
    await Response(writer).json(problem.status, answer, {"Connection": "close"})
    writer.write_eof()
    while await reader.read(_PIECE):
        pass


def _checked(answer: AnswerHead) -> bytes:
    """The head for the sandbox. A redirect is refused, because only this one address is allowed."""
    if 300 <= answer.status < 400:
        # Model clients do not retry after a 404.
        raise BadRequest(404, "The model's address answers with a redirect, which is not followed.")
    fields = (*end_to_end(answer.fields, _NOT_TOLD), ("connection", "close"))
    return written(f"HTTP/1.1 {answer.status} {answer.reason}", fields)


def _listen(namespace: Path | None) -> socket.socket:
    """A listening socket on the loopback of that namespace. Blocking: call it in a separate thread."""
    if namespace is None:
        return socket.create_server(("127.0.0.1", 0), backlog=128)
    there = Namespace(os.open(namespace, os.O_RDONLY | os.O_CLOEXEC))
    try:
        with entered(there):
            return socket.create_server(("127.0.0.1", 0), backlog=128)
    finally:
        there.close()
