"""The output of a command: kept within bounds, read without threads, passed on as it comes."""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import os
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

OutputStream = Literal["stdout", "stderr"]
Listener = Callable[[str, OutputStream], Awaitable[None]]
"""Gets text as it comes."""

_CHUNK = 1 << 18
_PACE_SEC = 0.002
"""Pause after each dropped chunk: endless output must not take a core of the worker."""
_HEAD = 4 << 20
_TAIL = 4 << 20


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    return_code: int
    stdout: str
    stderr: str
    fault: str = ""
    """What the container runtime reported if the command never started."""


class BoundedOutput:
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
        """Invalid UTF-8 is replaced. A gap is marked where it is."""
        head, tail = self._head.decode(errors="replace"), b"".join(self._tail).decode(errors="replace")
        if not self._dropped:
            return (bytes(self._head) + b"".join(self._tail)).decode(errors="replace")
        return f"{head}\n[seatrial: {self._dropped} bytes of output left out here]\n{tail}"


class CapturedStream:
    """Standard output or standard error of one command: kept within bounds, and passed to a listener as it comes."""

    def __init__(self, name: OutputStream, listener: Listener | None = None) -> None:
        self.kept = BoundedOutput()
        self._name = name
        self._listener = listener
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    async def take(self, data: bytes) -> None:
        self.kept.add(data)
        if self._listener is not None and (text := self._decoder.decode(data)):
            await self._listener(text, self._name)


class Pipe:
    """A pipe from a sandbox, read on the event loop until no process holds its other end."""

    def __init__(self, file: int, name: OutputStream, listener: Listener | None = None) -> None:
        os.set_blocking(file, False)
        with suppress(OSError):  # reads more at a time where the machine allows it
            fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, _CHUNK)
        self._file = file
        self._captured: CapturedStream | None = CapturedStream(name, listener)

    async def drain(self) -> None:
        """Reads to the end. Closes the pipe, also when cancelled."""
        try:
            while True:
                try:
                    data = os.read(self._file, _CHUNK)
                except BlockingIOError:
                    await ready(self._file)
                    continue
                if not data:
                    return
                await self._take(data)
        finally:
            os.close(self._file)

    def settle(self) -> str:
        """Returns the output so far. From now on output is read and dropped, so that its writers neither block nor
        die."""
        captured, self._captured = self._captured, None
        return captured.kept.text if captured is not None else ""

    async def _take(self, data: bytes) -> None:
        if self._captured is not None:
            await self._captured.take(data)
        if self._captured is None or self._captured.kept.overflows:
            await asyncio.sleep(_PACE_SEC)
        elif len(data) == _CHUNK:
            await asyncio.sleep(0)


async def ready(file: int, *, to_write: bool = False) -> None:
    """Waits on the event loop until a descriptor can be read, or written."""
    loop = asyncio.get_running_loop()
    add, remove = (loop.add_writer, loop.remove_writer) if to_write else (loop.add_reader, loop.remove_reader)
    is_ready = asyncio.Event()
    add(file, is_ready.set)
    try:
        await is_ready.wait()
    finally:
        remove(file)
