"""The address at which one trial reaches its models. That address is the trial's identity: there is no token to steal.

A door listens on the loopback of the sandbox's network namespace, or on this machine's for an agent that runs here. No
firewall is opened: a socket belongs to the namespace in which it was made. The sandbox may send anything: ``head``
reads it strictly, ``DoorLimits`` says what one sandbox may use, and each connection serves one request, so that nothing
after it can pass unchecked.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from seatrial.gateway.answer_writer import AnswerWriter
from seatrial.gateway.head import RequestHead, read_request_head
from seatrial.plain_http import BadRequest, Connections
from seatrial.sandboxes.network.namespace import Namespace, entered

log = logging.getLogger(__name__)

_BUFFERED = 64 * 1024
"""Reading from a connection pauses while twice as many bytes wait. Most requests are shorter than that."""


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """What one sandbox may use of the gate."""

    connections: int = 64
    """Open at once. More are refused with an answer, and beyond twice as many without one."""
    body_bytes: int = 32 * 1024 * 1024
    head_sec: float = 30.0
    body_sec: float = 120.0
    """From the head to the end of a body."""
    stall_sec: float = 60.0
    """How long an agent may leave its answer unread."""
    total_sec: float = 7200.0
    linger_sec: float = 2.0
    """How long a refused connection stays open, so that the agent can read why."""


Serve = Callable[[RequestHead, asyncio.StreamReader, AnswerWriter], Awaitable[None]]
"""Answers one request. ``BadRequest`` becomes an answer."""


class Door:
    """Open while its block runs. ``refused`` counts requests and connections that were refused."""

    def __init__(self, namespace: Path | None, serve: Serve, limits: DoorLimits | None = None) -> None:
        """``namespace`` is the sandbox's; ``None`` listens on this machine."""
        self._namespace = namespace
        self._serve = serve
        self._limits = limits or DoorLimits()
        self._connections = Connections()
        self._open = 0
        self._port = 0
        self.refused = 0

    async def __aenter__(self) -> Self:
        # A thread that was in another namespace is not used again.
        with ThreadPoolExecutor(max_workers=1) as threads:
            listener = await asyncio.get_running_loop().run_in_executor(threads, _listen, self._namespace)
        self._server = await asyncio.start_server(self._connects, sock=listener, limit=_BUFFERED)
        self._port = listener.getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        await self._connections.end()

    @property
    def url(self) -> str:
        """Without a path. Agents add the version that their provider's address has."""
        return f"http://127.0.0.1:{self._port}"

    def _connects(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begins at once. In the loop's next turn it would have to wait for what other trials do."""
        asyncio.Task(self._connected(reader, writer), loop=asyncio.get_running_loop(), eager_start=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= 2 * self._limits.connections:  # even a refusal would take time
            self.refused += 1
            writer.transport.abort()
            return
        self._open += 1
        try:
            with self._connections.hold(writer):
                await self._answered(reader, AnswerWriter(reader, writer, self._limits.stall_sec))
        finally:
            self._open -= 1

    async def _answered(self, reader: asyncio.StreamReader, answer: AnswerWriter) -> None:
        try:
            async with asyncio.timeout(self._limits.total_sec):
                if self._open > self._limits.connections:
                    raise BadRequest(503, f"More than {self._limits.connections} calls are open at once.")
                async with asyncio.timeout(self._limits.head_sec):
                    head = await read_request_head(reader, self._limits.body_bytes)
                if head is not None:
                    self._check_origin(head)
                    await self._serve(head, reader, answer)
        except BadRequest as problem:
            await self._refuse(problem.status, str(problem), answer)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            answer.cut()  # the agent closed the connection, was silent, or ran out of time
        except Exception:
            log.exception("A model call ended in an error of the gate")
            await self._refuse(500, "The gate failed.", answer)

    def _check_origin(self, head: RequestHead) -> None:
        """A page in a browser of this machine could spend through a door here, without seeing the answers. Browsers
        tell whose page it is; agents send no such header."""
        if self._namespace is None and any(name == "origin" for name, _ in head.fields):
            raise BadRequest(403, "Models are not called from web pages here.")

    async def _refuse(self, status: int, message: str, answer: AnswerWriter) -> None:
        self.refused += 1
        if answer.begun:
            answer.cut()
        else:
            body = json.dumps({"error": {"message": message, "type": "gate"}}).encode()
            await answer.refuse(status, body, self._limits.linger_sec)


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
