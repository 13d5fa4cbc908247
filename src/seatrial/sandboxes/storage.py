"""Keeps a sandbox from filling the disk: one look a second at the whole file system, and a closer one when it grows.

Quotas are not there on most machines, so this is the storage limit. ``Machine`` has one watch for all sandboxes of the
process; it costs one system call a second as long as nothing grows.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from seatrial.sandboxes.private_mounts import PrivateMounts

_INTERVAL_SEC = 0.5
_GROWTH = 64 << 20
"""Bytes that the file system may grow by before sandboxes are measured again."""
_RESERVE = 2 << 30
"""Free bytes below which whoever is over half of its limit is removed."""


Exceeded = Callable[[int, bool], None]
"""Told the bytes found each time that it is too much by more than before, and whether the disk itself is in danger."""


@dataclass(slots=True)
class Watched:
    directory: Path
    limit: int
    exceeded: Exceeded
    loop: asyncio.AbstractEventLoop
    allowed: int


class StorageWatch:
    """Watches while there is anything to watch."""

    def __init__(self, place: Path, mounts: PrivateMounts) -> None:
        self._place = place
        self._mounts = mounts
        self._watched: dict[str, Watched] = {}
        self._tasks: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}

    def add(self, name: str, directory: Path, limit: int, exceeded: Exceeded) -> None:
        """On the event loop that ``exceeded`` shall be called on."""
        loop = asyncio.get_running_loop()
        self._watched[name] = Watched(directory, limit, exceeded, loop, limit)
        if loop not in self._tasks or self._tasks[loop].done():
            self._tasks = {known: task for known, task in self._tasks.items() if not known.is_closed()}
            self._tasks[loop] = loop.create_task(self._watch(loop))

    def remove(self, name: str) -> None:
        self._watched.pop(name, None)

    def _of(self, loop: asyncio.AbstractEventLoop) -> list[Watched]:
        return [watched for watched in list(self._watched.values()) if watched.loop is loop]

    async def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        measured = self._used()[0]
        while self._of(loop):
            await asyncio.sleep(_INTERVAL_SEC)
            used, free = self._used()
            if used - measured < _GROWTH and free > _RESERVE:
                measured = min(measured, used)
                continue
            measured = used
            for watched in self._of(loop):
                await self._measure(watched, in_danger=free < _RESERVE)

    async def _measure(self, watched: Watched, *, in_danger: bool) -> None:
        size = await self._mounts.carry(size_of, watched.directory)
        in_danger = size > 2 * watched.limit or (in_danger and size > watched.limit // 2)
        if size > watched.allowed or in_danger:
            watched.allowed = max(size, watched.limit) + _GROWTH
            watched.exceeded(size, in_danger)

    def _used(self) -> tuple[int, int]:
        status = os.statvfs(self._place)
        return (status.f_blocks - status.f_bfree) * status.f_frsize, status.f_bavail * status.f_frsize


def size_of(directory: Path) -> int:
    """Bytes on disk below a directory; what vanishes meanwhile counts nothing. Blocking."""
    total = 0
    pending = [str(directory)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue
    return total
