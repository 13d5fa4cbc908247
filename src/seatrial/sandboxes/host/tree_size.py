"""How much disk a sandbox takes, counted from outside: what its directories hold, and deleted files that it keeps open.

``storage`` measures sandboxes this way that have no file system of their own. Nothing that is counted is trusted: no
link is followed, a path may have any length, a tree any depth, and the count ends after a given number of entries.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.sandboxes.host.in_root import closing

MOST_ENTRIES = 4_000_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_MEMORY = ("tmpfs", "devtmpfs", "ramfs", "hugetlbfs", "proc", "sysfs", "devpts", "mqueue", "cgroup", "cgroup2")


@dataclass(slots=True)
class Count:
    """What was found so far."""

    most: int = MOST_ENTRIES
    size: int = 0
    """Bytes on disk. A file with several names counts once."""
    entries: int = 0
    _linked: set[tuple[int, int]] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        """Whether there are more entries than are counted."""
        return self.entries > self.most

    def add(self, status: os.stat_result) -> None:
        self.entries += 1
        if status.st_nlink != 1 and not stat.S_ISDIR(status.st_mode):
            identity = (status.st_dev, status.st_ino)
            if identity in self._linked:
                return
            self._linked.add(identity)
        self.size += status.st_blocks * 512


@dataclass(slots=True)
class _Level:
    identity: tuple[int, int]
    folders: list[str]


def measure(top: Path, count: Count | None = None) -> Count:
    """Adds a file, or a directory with all below it. What vanishes meanwhile counts nothing. Blocking."""
    count = count if count is not None else Count()
    try:
        if not stat.S_ISDIR((status := os.lstat(top)).st_mode):
            count.add(status)
            return count
        here = os.open(top, _FOLDER)
    except OSError:
        return count
    try:
        here = _walk(here, count)
    finally:
        os.close(here)
    return count


def _walk(here: int, count: Count) -> int:
    """Goes down and up by one descriptor, so that neither length nor depth matters; returns the one it ended with."""
    levels = [_look(here, count)]
    while levels and not count.is_over:
        if levels[-1].folders:
            with suppress(OSError):  # removed, or not a folder any more
                below = os.open(levels[-1].folders.pop(), _FOLDER, dir_fd=here)
                os.close(here)
                here = below
                levels.append(_look(here, count))
            continue
        levels.pop()
        if not levels:
            break
        above = os.open("..", _FOLDER, dir_fd=here)
        os.close(here)
        here = above
        if _identity(here) != levels[-1].identity:  # the folder was moved meanwhile
            break
    return here


def _look(folder: int, count: Count) -> _Level:
    folders = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if count.is_over:
                break
            with suppress(OSError):
                count.add(entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
    return _Level(_identity(folder), folders)


def _identity(folder: int) -> tuple[int, int]:
    status = os.fstat(folder)
    return status.st_dev, status.st_ino


def measure_deleted(processes: Iterable[int], count: Count) -> None:
    """Adds files on disk that have no name any more and that these processes hold open or mapped. Blocking."""
    seen: set[tuple[int, int]] = set()
    for process in processes:
        in_memory = _devices_in_memory(process)
        for place in (f"/proc/{process}/fd", f"/proc/{process}/map_files"):
            for status in _links(place, count):
                identity = (status.st_dev, status.st_ino)
                is_deleted = stat.S_ISREG(status.st_mode) and status.st_nlink == 0
                if is_deleted and status.st_dev not in in_memory and identity not in seen:
                    seen.add(identity)
                    count.size += status.st_blocks * 512


def _links(place: str, count: Count) -> Iterator[os.stat_result]:
    """What the links of one process lead to. ``stat`` opens nothing."""
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            count.entries += 1
            if count.is_over:
                return
            with suppress(OSError):
                yield entry.stat()


def _devices_in_memory(process: int) -> set[int]:
    """Files there count as the sandbox's memory."""
    found = {_anonymous_memory()}
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{process}/mountinfo").read_text(errors="replace").splitlines():
            fields = line.split()
            if fields[fields.index("-") + 1] in _IN_MEMORY:
                major, _, minor = fields[2].partition(":")
                found.add(os.makedev(int(major), int(minor)))
    return found


def _anonymous_memory() -> int:
    with closing(os.memfd_create("seatrial", os.MFD_CLOEXEC)) as file:
        return os.fstat(file).st_dev
