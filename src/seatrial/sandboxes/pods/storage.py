"""Keeps a sandbox from filling the disk: two looks a second at the whole file system, and a closer one when it grows.

Quotas are not there on most machines, so this is the storage limit. ``Machine`` has one watch for all sandboxes of the
process; it costs two system calls a second as long as nothing grows.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from seatrial.sandboxes.pods.private_mounts import PrivateMounts

_QUIET_LIMIT = 60
"""Looks without growth after which sandboxes are measured anyway: others may free what one sandbox fills."""

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

    def __init__(
        self,
        place: Path,
        mounts: PrivateMounts,
        *,
        interval_sec: float = 0.5,
        growth: int = 64 << 20,
        reserve: int = 2 << 30,
    ) -> None:
        """Sandboxes are measured again once the file system grew by ``growth`` bytes; below ``reserve`` free bytes,
        whoever is over half of its limit endangers the disk."""
        self._place = place
        self._mounts = mounts
        self._interval_sec = interval_sec
        self._growth = growth
        self._reserve = reserve
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
        measured, quiet = self._used()[0], 0
        while self._of(loop):
            await asyncio.sleep(self._interval_sec)
            used, free = self._used()
            if used - measured < self._growth and free > self._reserve and quiet < _QUIET_LIMIT:
                measured, quiet = min(measured, used), quiet + 1
                continue
            measured, quiet = used, 0
            for watched in self._of(loop):
                await self._measure(watched, in_danger=free < self._reserve)

    async def _measure(self, watched: Watched, *, in_danger: bool) -> None:
        size = await self._mounts.carry(size_of, watched.directory)
        in_danger = size > 2 * watched.limit or (in_danger and size > watched.limit // 2)
        if size > watched.allowed or in_danger:
            watched.allowed = max(size, watched.limit) + self._growth
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
