"""Keeps sandboxes from filling the disk: checks the whole file system twice a second, and each sandbox when it grows.

For a sandbox with a disk image (``disk_image``) the kernel enforces the limit; here a full image is only recorded, and
the sandbox is stopped before the machine's disk is full. For all others this is the storage limit. ``Machine`` has one
watch for all daemonless sandboxes of the process, ``docker.storage`` one for each container of an engine on this
machine. It costs two system calls a second as long as nothing grows.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from seatrial.engine.clock import system_clock
from seatrial.engine.duties import Duties
from seatrial.sandboxes.host.disk_image import Disk, inodes_for
from seatrial.sandboxes.host.tree_size import Count, measure, measure_deleted

_log = logging.getLogger(__name__)
_QUIET_LIMIT = 60
"""Checks without growth after which sandboxes are measured anyway: others may free what one sandbox fills."""

GROWTH = 64 << 20
"""Growth in bytes after which sandboxes are measured again."""

_LAST_PART = 4
"""With less than this part of the reserve free, the newest sandbox is removed even within its limit."""

Exceeded = Callable[[int, bool], None]
"""Called with the bytes found whenever the excess has grown, and whether the machine's disk is in danger."""


class Allowance:
    """What one sandbox may fill, and when it has exceeded that."""

    def __init__(self, limit: int, exceeded: Exceeded, growth: int = GROWTH) -> None:
        self._limit = limit
        self.exceeded = exceeded
        self._growth = growth
        self._allowed = limit
        self._was_told = False

    def judge(self, size: int, *, disk_is_short: bool = False) -> bool:
        """Whether it endangers the disk.

        Growth right after a report may have been written before the writer was killed. It is not reported, so that the
        next command is not killed for it."""
        in_danger = size > 2 * self._limit or (disk_is_short and size > self._limit // 2)
        is_more = size > self._allowed
        is_told = in_danger or (is_more and not self._was_told)
        if is_more or in_danger:
            self._allowed = max(size, self._limit) + self._growth
        self._was_told = is_told
        if is_told:
            self.exceeded(size, in_danger)
        return in_danger


class Meter(Protocol):
    """Says what one sandbox takes of the disk."""

    def measure(self) -> int:
        """Bytes. Blocking, possibly for long."""

    def notice(self) -> int:
        """Bytes used on a full disk image; 0 if it is not full or there is none. Quick."""


class DiskMeter:
    """Of a sandbox whose limit the kernel holds."""

    def __init__(self, disk: Disk, limit: int) -> None:
        self._disk = disk
        self._limit = limit

    def measure(self) -> int:
        """What is taken of the machine's disk, once what was deleted is given back; never more than the limit."""
        with suppress(OSError):  # it has just ended
            self._disk.trim()
            return min(self._disk.taken, self._limit)
        return 0

    def notice(self) -> int:
        with suppress(OSError):
            return self._disk.used if self._disk.is_full else 0
        return 0


class TreeMeter:
    """Of a sandbox whose files are among the machine's."""

    def __init__(
        self,
        places: Iterable[Path],
        processes: Callable[[], Iterable[int]],
        limit: int,
        given: int = 0,
    ) -> None:
        """``processes`` may hold deleted files open; ``given`` bytes were there before the sandbox began."""
        self._places = tuple(places)
        self._processes = processes
        self._limit = limit
        self._given = given
        self._most = inodes_for(limit) + given // 4096

    def measure(self) -> int:
        """More files than belong to the limit count as more bytes than it allows."""
        count = Count(self._most)
        for place in self._places:
            measure(place, count)
        size = max(count.size - self._given, 0)
        if count.is_over:
            return max(size, self._limit + 1)
        deleted = Count()
        measure_deleted(self._processes(), deleted)
        return size + deleted.size

    def notice(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Watched:
    meter: Meter
    allowance: Allowance
    loop: asyncio.AbstractEventLoop
    name: str
    duties: Duties = field(default_factory=lambda: Duties(system_clock))

    def take_notice(self) -> None:
        if used := self.meter.notice():
            self.allowance.exceeded(used, False)

    async def measured(self, thread: ThreadPoolExecutor) -> int | None:
        """Bytes; ``None`` if they could not be counted now. That is no fault of the sandboxes beside it."""
        measuring = self.loop.run_in_executor
        return await self.duties.once(f"storage of {self.name}", lambda: measuring(thread, self.meter.measure))


class StorageWatch:
    """Watches while there is anything to watch."""

    def __init__(
        self,
        place: Path,
        *,
        interval_sec: float = 0.5,
        growth: int = GROWTH,
        reserve: int = 2 << 30,
    ) -> None:
        """Sandboxes are measured again once the file system grew by ``growth`` bytes; below ``reserve`` free bytes,
        a sandbox over half of its limit endangers the disk."""
        self._place = place
        self._interval_sec = interval_sec
        self._growth = growth
        self._reserve = reserve
        self._watched: dict[str, Watched] = {}
        self._tasks: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}
        self._duties = Duties(system_clock)
        # A separate thread: a sandbox can make its measuring take long.
        self._measuring = ThreadPoolExecutor(1, "sandbox-storage")

    def add(self, name: str, meter: Meter, limit: int, exceeded: Exceeded) -> None:
        """``exceeded`` is called on the running event loop."""
        loop = asyncio.get_running_loop()
        self._watched[name] = Watched(meter, Allowance(limit, exceeded, self._growth), loop, name)
        if loop not in self._tasks or self._tasks[loop].done():
            self._tasks = {known: task for known, task in self._tasks.items() if not known.is_closed()}
            self._tasks[loop] = loop.create_task(self._watch(loop))

    def remove(self, name: str) -> None:
        self._watched.pop(name, None)

    def close(self) -> None:
        """Once nothing will be watched any more."""
        self._measuring.shutdown(wait=False, cancel_futures=True)

    def _of(self, loop: asyncio.AbstractEventLoop) -> list[Watched]:
        """The newest first."""
        return [watched for watched in reversed(list(self._watched.values())) if watched.loop is loop]

    async def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        measured: int | None = None
        quiet = 0

        async def look() -> None:
            nonlocal measured, quiet
            for watched in self._of(loop):
                watched.duties.now(f"disk image of {watched.name}", watched.take_notice)
            used, free = self._used()
            measured = used if measured is None else min(measured, used)
            if used - measured < self._growth and free > self._reserve and quiet < _QUIET_LIMIT:
                quiet += 1
                return
            quiet = _QUIET_LIMIT  # until all were measured
            await self._measure(loop)
            measured, quiet = used, 0

        while self._of(loop):
            await self._duties.once("storage watch", look)
            await asyncio.sleep(self._interval_sec)

    async def _measure(self, loop: asyncio.AbstractEventLoop) -> None:
        """Measures each sandbox. Stops after one that endangers the disk, since its removal frees space."""
        newest: tuple[Watched, int] | None = None
        for watched in self._of(loop):
            size = await watched.measured(self._measuring)
            if size is None:
                continue
            newest = newest or (watched, size)
            is_short = self._used()[1] < self._reserve
            if watched.allowance.judge(size, disk_is_short=is_short) and is_short:
                return
        if newest is not None and self._used()[1] < self._reserve // _LAST_PART:
            newest[0].allowance.exceeded(
                newest[1], True
            )  # the disk is about to be full, and no sandbox is over its limit

    def _used(self) -> tuple[int, int]:
        status = os.statvfs(self._place)
        return (status.f_blocks - status.f_bfree) * status.f_frsize, status.f_bavail * status.f_frsize


class StorageLimit:
    """Acts when a sandbox exceeds its limit: kills its processes, or removes it if the machine's disk is in danger."""

    def __init__(
        self,
        limit_mb: int,
        kill: Callable[[], Awaitable[None]],
        remove: Callable[[], Awaitable[None]],
        *,
        has_own_disk: bool = False,
    ) -> None:
        """With ``has_own_disk`` the kernel holds the limit, so that a full disk is only recorded."""
        self.exceeded_mb = 0
        self.removed_because = ""
        """Why the sandbox does not exist any more."""
        self._limit_mb = limit_mb
        self._kill = kill
        self._remove = remove
        self._has_own_disk = has_own_disk
        self._acting: set[asyncio.Task[None]] = set()
        self._were_killed = False
        self._must_try_again = False
        """Whether it could not be removed."""

    def exceeded(self, size: int, in_danger: bool) -> None:
        used, limit, is_first = size >> 20, self._limit_mb, not self.exceeded_mb
        self.exceeded_mb = max(used, self.exceeded_mb)
        if self.removed_because and not self._must_try_again:
            return
        if self._has_own_disk and not in_danger:
            if is_first:
                _log.warning("The sandbox has filled the %d MB of disk that it is allowed.", limit)
            return
        if in_danger:
            self.removed_because = (
                f"The sandbox was removed: it filled {used} MB of disk, and its storage limit is {limit} MB."
            )
        elif self._acting or self._were_killed:
            # They wrote it until they were gone, which takes long on a busy machine. A command that came since goes on.
            self._were_killed = bool(self._acting)
            return
        _log.warning("%d MB of disk used, %d MB allowed: the sandbox's processes are killed.", used, limit)
        task = asyncio.create_task(self._act(self._remove if in_danger else self._kill))
        self._acting.add(task)
        task.add_done_callback(self._acting.discard)

    async def settled(self) -> None:
        """Waits until all processes that are to be killed are gone: a new command must not be among them."""
        if self._acting:
            await asyncio.gather(*self._acting, return_exceptions=True)

    async def _act(self, action: Callable[[], Awaitable[None]]) -> None:
        self._must_try_again = False
        try:
            await action()
            self._were_killed = True
        except Exception as error:  # the next measurement tries again
            self._must_try_again = bool(self.removed_because)
            _log.warning("A sandbox that fills the disk could not be stopped: %r", error)
