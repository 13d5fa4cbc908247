"""One door out of a sandbox: its loopback, at one port, leads to one model's address and nowhere else.

An agent that is installed into a sandbox calls its model from in there, where this machine's loopback, private
addresses, or any network at all may be out of reach, and where a key would be there for the task to read. The relay
listens *inside* the sandbox's network namespace and asks the model *from outside*, with the key, which the sandbox
never sees. No firewall is opened: a socket belongs to the namespace it was made in, so only its making happens there.

Whoever sits in the sandbox may send anything. ``relay_head`` reads it strictly, ``relay_paths`` says which calls are
open, and ``RelayLimits`` what one sandbox may use. Bodies pass in pieces, so that no number of them fills the memory.

``agents.inside`` uses it for the time that an agent runs. The runner uses it on this machine for an agent whose model's
address a caller of the service chose: whatever client the agent has, a redirect to elsewhere ends here.
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
    end_to_end,
    read_answer_head,
    read_request_head,
    written,
)
from seatrial.sandboxes.network.relay_paths import check_target

_NOT_ASKED = frozenset({"content-length", "cookie", "expect", "forwarded", "host", "x-forwarded-for", "x-real-ip"})
_NOT_TOLD = frozenset({"alt-svc", "location", "set-cookie"})
"""Of an answer: what would have the client come back by another way."""
_KEYS = frozenset({"api-key", "authorization", "x-api-key", "x-goog-api-key"})
"""A sandbox has no key; what it sends here, it made up."""
_PIECE = 65536
_LINGER_SEC = 2.0


@dataclass(frozen=True, slots=True)
class RelayLimits:
    """What one sandbox may use of the relay."""

    connections: int = 64
    """Open at once; who comes after that is told so and sent away."""
    body_bytes: int = 32 * 1024 * 1024
    connect_sec: float = 30.0
    head_sec: float = 30.0
    idle_sec: float = 900.0
    """Without a byte in either direction: models think long."""
    total_sec: float = 7200.0


class ModelRelay:
    """Serves while it is open. ``calls`` counts what was passed on, ``refused`` what was not."""

    def __init__(
        self,
        upstream: str,
        namespace: Path | None,
        headers: Mapping[str, str] | None = None,
        *,
        passes_keys: bool = False,
        limits: RelayLimits | None = None,
    ) -> None:
        """``namespace`` is the sandbox's; ``None`` listens on this machine. ``headers`` go with every call.

        With ``passes_keys`` the caller is ours and sends the model's key itself."""
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
        # A thread that has been elsewhere is not used again.
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
        """One request for each connection: nothing that follows it can slip through unseen."""
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
            writer.transport.abort()  # the agent hung up or says nothing, or its time is over

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
                told = _checked(await read_answer_head(answer))
            writer.write(told)
            await self._carry(answer, writer, None)
        finally:
            question.transport.abort()

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, length: int | None) -> None:
        """Passes on that many bytes, or all until the end, as fast as the slower side takes them."""
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
    """Says why, then takes what is still on its way: closing over unread bytes would take the answer back."""
    answer = {"error": {"message": str(problem), "type": "relay"}}
    await Response(writer).json(problem.status, answer, {"Connection": "close"})
    writer.write_eof()
    while await reader.read(_PIECE):
        pass


def _checked(answer: AnswerHead) -> bytes:
    """The head as the sandbox gets it, unless it sends us elsewhere: the address that was allowed is this one."""
    if 300 <= answer.status < 400:
        # Model clients take a 404 for what it is: asking again would not help.
        raise BadRequest(404, "The model's address sends its callers elsewhere; that is not followed.")
    fields = (*end_to_end(answer.fields, _NOT_TOLD), ("connection", "close"))
    return written(f"HTTP/1.1 {answer.status} {answer.reason}", fields)


def _listen(namespace: Path | None) -> socket.socket:
    """A listening socket on the loopback of that namespace. Blocking, in a thread of its own."""
    if namespace is None:
        return socket.create_server(("127.0.0.1", 0), backlog=128)
    there = Namespace(os.open(namespace, os.O_RDONLY | os.O_CLOEXEC))
    try:
        with entered(there):
            return socket.create_server(("127.0.0.1", 0), backlog=128)
    finally:
        there.close()
