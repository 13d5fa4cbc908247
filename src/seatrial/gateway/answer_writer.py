"""Writes answers to an agent: one for each connection, whole or in pieces."""

from __future__ import annotations

import asyncio
import contextlib
from http import HTTPStatus

from seatrial.gateway.head import Fields, end_to_end, written

_NOT_TOLD = frozenset({"alt-svc", "content-length", "location", "set-cookie", "strict-transport-security"})
"""Headers of an answer that would make the client use another address or keep state. The gate writes its own length."""
_PIECE = 65536


class NotRead(ConnectionError):
    """The agent did not read its answer for too long. The connection is cut."""


class AnswerWriter:
    """``begun`` says whether the agent may have seen a part of the answer. An agent that reads nothing for
    ``stall_sec`` is cut off, because an answer under way takes one of the calls that its provider allows at once."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stall_sec: float) -> None:
        self._reader = reader
        self._writer = writer
        self._stall_sec = stall_sec
        self.begun = False

    async def whole(self, status: int, reason: str, fields: Fields, body: bytes) -> None:
        head = self._head(status, reason, fields, ("content-length", str(len(body))))
        self._writer.write(head + body if len(body) <= _PIECE else head)  # one system call for a short answer
        if len(body) > _PIECE:
            self._writer.write(body)
        await self._drain()

    def begin(self, status: int, reason: str, fields: Fields) -> None:
        """The head of an answer whose body follows in pieces."""
        self._writer.write(self._head(status, reason, fields, ("transfer-encoding", "chunked")))

    async def piece(self, data: bytes) -> None:
        if data:
            self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await self._drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._drain()

    def go_on(self) -> None:
        """Tells a client that waits for it to send its body."""
        self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def cut(self) -> None:
        """Closes the connection in the middle, so that no client takes the answer for complete."""
        self._writer.transport.abort()

    async def refuse(self, status: int, body: bytes, linger_sec: float) -> None:
        """Sends the reason, then reads the rest: a close with unread bytes would discard the answer."""
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(linger_sec):
                await self.whole(status, "", (("content-type", "application/json"),), body)
                self._writer.write_eof()
                while await self._reader.read(_PIECE):
                    pass

    async def _drain(self) -> None:
        """Waits until the agent has read enough. Raises ``NotRead``."""
        transport = self._writer.transport
        while True:
            left = transport.get_write_buffer_size()
            if not left and not transport.is_closing():
                return  # the usual case, which needs no timer
            try:
                async with asyncio.timeout(self._stall_sec):
                    await self._writer.drain()
                    return
            except TimeoutError:
                if transport.get_write_buffer_size() >= left:
                    self.cut()
                    raise NotRead("the agent did not read its answer") from None

    def _head(self, status: int, reason: str, fields: Fields, length: tuple[str, str]) -> bytes:
        kept = end_to_end(fields, _NOT_TOLD | {"transfer-encoding"})
        phrase = reason or (HTTPStatus(status).phrase if status in HTTPStatus else "Error")
        head = written(f"HTTP/1.1 {status} {phrase}", (*kept, length, ("connection", "close")))
        self.begun = True
        return head
