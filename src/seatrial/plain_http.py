"""A minimal HTTP/1.1 server protocol: requests with a length, plain answers, event streams, cut connections.

Used by the scripted model server, the gate's doors and the rollout socket, which need no web framework.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

_BODY_LIMIT = 64 * 1024 * 1024


class BadRequest(Exception):
    """The request is malformed; the connection is closed after this answer."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    """Lower-case names."""
    body: bytes


class Connections:
    """The open connections of one server, each served by its own task."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    @contextmanager
    def hold(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        """Registers the connection while the calling task serves it, then closes it."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)
            writer.close()

    async def end(self) -> None:
        """Cuts all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    """The next request of a connection; ``None`` if the client has disconnected."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError as error:
        raise BadRequest(431, "The headers are too long.") from error
    line, *fields = head.rstrip("\r\n").split("\r\n")
    try:
        method, path, _ = line.split(" ")
    except ValueError as error:
        raise BadRequest(400, "The request line is malformed.") from error
    headers = {name.strip().lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    if "transfer-encoding" in headers:
        raise BadRequest(411, "Requests need a Content-Length.")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > _BODY_LIMIT:
        raise BadRequest(413, "The body is too long.")
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        body = await reader.readexactly(int(length))
    except asyncio.IncompleteReadError:
        return None
    return Request(method=method, path=path, headers=headers, body=body)


class Response:
    """One answer on a connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def json(self, status: int, content: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        await self.raw(status, json.dumps(content).encode(), "application/json", headers)

    async def raw(self, status: int, body: bytes, kind: str, headers: Mapping[str, str] | None = None) -> None:
        self._head(status, {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})})
        self._writer.write(body)
        await self._writer.drain()

    async def events(self, pieces: AsyncIterator[bytes]) -> None:
        self._head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        async for piece in pieces:
            self._writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await self._writer.drain()
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def cut(self, *, streaming: bool) -> None:
        """Starts an answer and leaves it unfinished; the caller closes the connection."""
        if streaming:
            self._head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
            piece = b'data: {"id": "cut", "object": "chat.completion.chunk", "choices": []}\n\n'
            self._writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        else:
            self._head(200, {"Content-Type": "application/json", "Content-Length": "1000"})
            self._writer.write(b'{"id": "cut", "choices": [')
        await self._writer.drain()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [
            f"HTTP/1.1 {status} {_phrase(status)}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))


def _phrase(status: int) -> str:
    """Providers use statuses that the standard does not define, such as 529."""
    return HTTPStatus(status).phrase if status in HTTPStatus else "Error"
