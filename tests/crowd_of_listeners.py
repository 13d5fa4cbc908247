"""Many clients of server-sent events in one process, cheaper than a real client each. For tests and benchmarks.

Each keeps the numbers of the events it got and when the last one came.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.waiting import LIMIT_SEC

_ID = re.compile(rb"^id: (\d+)-\d+\nevent: (?!end)", re.MULTILINE)


@dataclass
class Ear:
    """One client. What it got is looked at only when it is asked for: the crowd must not be busier than the server."""

    ended_at: float | None = None
    _got: list[bytes] = field(default_factory=list)

    def take(self, data: bytes) -> None:
        self._got.append(data)
        if b"event: end" in (b"".join(self._got[-2:]) if len(data) < 64 else data[-200:]):
            self.ended_at = time.monotonic()

    @property
    def seen(self) -> list[int]:
        """The numbers of the events, in the order in which they came."""
        body = re.sub(rb"(^|\r\n)[0-9a-f]+\r\n", b"", b"".join(self._got))
        return [int(number) for number in _ID.findall(body)]


@asynccontextmanager
async def listening(address: str, path: str, count: int) -> AsyncIterator[list[Ear]]:
    """``count`` clients that have been answered."""
    ears = [Ear() for _ in range(count)]
    ready = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(_hear(address, path, ear, ready)) for ear in ears]
    try:
        async with asyncio.timeout(LIMIT_SEC):
            for _ in ears:
                await ready.acquire()
        yield ears
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def never_reading(address: str, path: str, count: int) -> AsyncIterator[None]:
    """Clients that ask, and take nothing of the answer."""
    host, port = _place(address)
    writers = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection(host, port, limit=1)
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(_request(host, path))
        writers.append(writer)
    try:
        yield
    finally:
        for writer in writers:
            writer.close()


async def _hear(address: str, path: str, ear: Ear, ready: asyncio.Semaphore) -> None:
    host, port = _place(address)
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(_request(host, path))
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head, head
        ready.release()
        while ear.ended_at is None and (data := await reader.read(1 << 16)):
            ear.take(data)
    finally:
        writer.close()


def _place(address: str) -> tuple[str, int]:
    found = urlsplit(address)
    return found.hostname or "", found.port or 80


def _request(host: str, path: str) -> bytes:
    return f"GET /api/v1{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
