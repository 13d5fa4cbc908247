"""What a command prints: kept within bounds, read without threads, passed on as it comes."""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import os
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

Listener = Callable[[str], Awaitable[None]]

_CHUNK = 1 << 18
_PACE_SEC = 0.002
"""Pause after each chunk that is only thrown away: endless output must not take a core of the worker."""
_HEAD = 4 << 20
_TAIL = 4 << 20


class Kept:
    """The beginning and the end of a stream, however long it is."""

    def __init__(self, head: int = _HEAD, tail: int = _TAIL) -> None:
        self._head_limit, self._tail_limit = head, tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_limit:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self._dropped += gone

    @property
    def overflows(self) -> bool:
        return self._dropped > 0

    @property
    def text(self) -> str:
        """Bytes that are no text are replaced; a gap is said in its place."""
        head, tail = self._head.decode(errors="replace"), b"".join(self._tail).decode(errors="replace")
        if not self._dropped:
            return (bytes(self._head) + b"".join(self._tail)).decode(errors="replace")
        return f"{head}\n[seatrial: {self._dropped} bytes of output left out here]\n{tail}"


class Stream:
    """One pipe from a sandbox, read on the event loop until nobody holds its other end."""

    def __init__(self, file: int, listener: Listener | None = None) -> None:
        os.set_blocking(file, False)
        with suppress(OSError):  # more at a time, where the machine allows it
            fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, _CHUNK)
        self._file = file
        self._listener = listener
        self._kept: Kept | None = Kept()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    async def drain(self) -> None:
        """Reads to the end. Closes the pipe, also when cancelled."""
        try:
            while True:
                try:
                    data = os.read(self._file, _CHUNK)
                except BlockingIOError:
                    await self._readable()
                    continue
                if not data:
                    return
                await self._take(data)
        finally:
            os.close(self._file)

    def settle(self) -> str:
        """What came so far. From now on the pipe is only emptied, so that its writers neither block nor die."""
        kept, self._kept, self._listener = self._kept, None, None
        return kept.text if kept is not None else ""

    async def _take(self, data: bytes) -> None:
        if self._kept is not None:
            self._kept.add(data)
        if self._listener is not None and (text := self._decoder.decode(data)):
            await self._listener(text)
        if self._kept is None or self._kept.overflows:
            await asyncio.sleep(_PACE_SEC)
        elif len(data) == _CHUNK:
            await asyncio.sleep(0)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_reader(self._file, _resolve, ready)
        try:
            await ready
        finally:
            loop.remove_reader(self._file)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
