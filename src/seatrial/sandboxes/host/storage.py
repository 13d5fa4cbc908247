"""Keeps a sandbox from filling the disk: two looks a second at the whole file system, and a closer one when it grows.

Quotas are not there on most machines, so this is the storage limit. ``Machine`` has one watch for all daemonless
sandboxes of the process, ``engine.storage`` one for each container of an engine on this machine; it costs two system
calls a second as long as nothing grows.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from seatrial.fair_threads import breathe
from seatrial.sandboxes.host.private_mounts import PrivateMounts

_QUIET_LIMIT = 60
"""Looks without growth after which sandboxes are measured anyway: others may free what one sandbox fills."""

GROWTH = 64 << 20
"""Bytes that are worth another look."""

Exceeded = Callable[[int, bool], None]
"""Told the bytes found each time that it is too much by more than before, and whether the disk itself is in danger."""


class Allowance:
    """What one sandbox may fill, and when there is something to say about it."""

    def __init__(self, limit: int, exceeded: Exceeded, growth: int = GROWTH) -> None:
        self._limit = limit
        self._exceeded = exceeded
        self._growth = growth
        self._allowed = limit
        self._was_told = False

    def judge(self, size: int, *, disk_is_short: bool = False) -> None:
        """What is found right after it was told may have been written before the writer was killed: that counts as
        seen, lest whoever comes next is killed for it."""
        in_danger = size > 2 * self._limit or (disk_is_short and size > self._limit // 2)
        is_more = size > self._allowed
        is_told = in_danger or (is_more and not self._was_told)
        if is_more or in_danger:
            self._allowed = max(size, self._limit) + self._growth
        self._was_told = is_told
        if is_told:
            self._exceeded(size, in_danger)


@dataclass(frozen=True, slots=True)
class Watched:
    directories: tuple[Path, ...]
    allowance: Allowance
    loop: asyncio.AbstractEventLoop


class StorageWatch:
    """Watches while there is anything to watch."""

    def __init__(
        self,
        place: Path,
        mounts: PrivateMounts,
        *,
        interval_sec: float = 0.5,
        growth: int = GROWTH,
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

    def add(self, name: str, directories: tuple[Path, ...], limit: int, exceeded: Exceeded) -> None:
        """On the event loop that ``exceeded`` shall be called on."""
        loop = asyncio.get_running_loop()
        self._watched[name] = Watched(directories, Allowance(limit, exceeded, self._growth), loop)
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
            if not self._of(loop):
                return
            used, free = self._used()
            if used - measured < self._growth and free > self._reserve and quiet < _QUIET_LIMIT:
                measured, quiet = min(measured, used), quiet + 1
                continue
            measured, quiet = used, 0
            for watched in self._of(loop):
                size = await self._mounts.carry(_size_of_all, watched.directories)
                watched.allowance.judge(size, disk_is_short=free < self._reserve)

    def _used(self) -> tuple[int, int]:
        status = os.statvfs(self._place)
        return (status.f_blocks - status.f_bfree) * status.f_frsize, status.f_bavail * status.f_frsize


def removal(used_mb: int, limit_mb: int) -> str:
    """Why a sandbox that endangered the disk is not there any more."""
    return f"The sandbox was removed: it filled {used_mb} MB of disk, and its storage limit is {limit_mb} MB."


def _size_of_all(directories: tuple[Path, ...]) -> int:
    return sum(size_of(directory) for directory in directories)


def size_of(directory: Path) -> int:
    """Bytes on disk below a directory; what vanishes meanwhile counts nothing. Blocking."""
    total = 0
    pending = [str(directory)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    breathe()
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue
    return total
