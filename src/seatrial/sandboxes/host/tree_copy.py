"""Copies a tree between two open directories, of which one belongs to a sandbox.

``transfer`` and ``pod_directory`` call it, ``docker.archive`` shares its rules. Only regular files, directories and
links are copied; nothing else is ever opened. The tree is walked level by level, never deeper than the limits say, so
that no tree takes more memory, descriptors or time than it was given.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from seatrial.sandboxes.host.in_root import closing, is_kernel_file, reopened
from seatrial.system.fair_threads import yield_turn

_CHUNK = 1 << 20
_TOLD = 50
_NAME_TOLD = 200
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Direction = Literal["in", "out"]
"""Into a sandbox, from files of Harbor or the task; or out of one, from untrusted files."""


@dataclass(frozen=True, slots=True)
class TransferLimits:
    """What one download may bring."""

    files: int = 10_000
    """Entries of any kind."""
    bytes: int = 2 << 30
    """As allocated: holes of sparse files count nothing."""
    depth: int = 64
    seconds: float = 600.0
    path: int = 900
    """Bytes of a path below the directory."""


UPLOAD = TransferLimits(files=1_000_000, bytes=1 << 40, depth=200, seconds=3600.0, path=4000)
"""For uploads, which were checked when they were submitted."""


@dataclass(slots=True)
class LeftOut:
    """What was not copied: the first few by name, all by reason. Names are shown without control characters."""

    entries: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, place: str, reason: str, detail: str = "") -> None:
        self.reasons[reason] += 1
        if len(self.entries) < _TOLD:
            self.entries.append(f"{printable(place)}: {reason}{printable(detail)}")

    def lines(self) -> list[str]:
        more = self.reasons.total() - len(self.entries)
        if more <= 0:
            return list(self.entries)
        counts = ", ".join(f"{reason}: {count}" for reason, count in self.reasons.most_common(10))
        return [*self.entries, f"and {more} more ({counts})"]


@dataclass(slots=True)
class Budget:
    """What is left of the limits during one transfer."""

    limits: TransferLimits
    files: int = 0
    bytes: int = 0
    until: float = 0.0

    def __post_init__(self) -> None:
        self.until = time.monotonic() + self.limits.seconds

    def refusal(self, place: str, depth: int, size: int = 0) -> str:
        """Why the next entry is not copied; empty if it is."""
        yield_turn()
        limits = self.limits
        if time.monotonic() > self.until:
            return f"there was no more time after {limits.seconds:g} s"
        if self.files >= limits.files:
            return f"more than {limits.files} files"
        if depth > limits.depth:
            return f"deeper than {limits.depth} directories"
        if len(os.fsencode(place)) > limits.path:
            return f"a path longer than {limits.path} bytes"
        if self.bytes + size > limits.bytes:
            return f"more than {limits.bytes >> 20} MB"
        return ""


@dataclass(slots=True)
class _Level:
    """One directory that is being copied."""

    origin: int
    goal: int
    place: str
    names: Iterator[str]
    mode: int


class TreeCopy:
    """One copy."""

    def __init__(self, direction: Direction, budget: Budget, first: Sequence[str] = ()) -> None:
        """``first`` are names at the top that are copied before anything else can use up the limits."""
        self.left_out = LeftOut()
        self._out = direction == "out"
        self._budget = budget
        self._first = first
        self._levels: list[_Level] = []

    def run(self, origin: int, goal: int) -> LeftOut:
        """Borrows both directories."""
        names = [*self._first, *(name for name in self._listed(origin, "") if name not in self._first)]
        self._levels.append(_Level(os.dup(origin), os.dup(goal), "", iter(names), -1))
        try:
            while self._levels:
                level = self._levels[-1]
                name = next(level.names, None)
                if name is None:
                    self._leave()
                else:
                    self._copy(level, name)
        finally:
            while self._levels:
                self._leave()
        return self.left_out

    def _listed(self, directory: int, place: str) -> list[str]:
        """Files before directories, and no more names than can be copied."""
        most = self._budget.limits.files - self._budget.files + 1
        with os.scandir(directory) as entries:
            found = [(entry.is_dir(follow_symlinks=False), entry.name) for entry in islice(entries, most)]
            if next(entries, None) is not None:
                self.left_out.add(place or ".", f"more than {self._budget.limits.files} files")
        return [name for _, name in sorted(found)]

    def _copy(self, level: _Level, name: str) -> None:
        place = f"{level.place}{name}"
        try:
            with closing(os.open(name, _LOOK, dir_fd=level.origin)) as found:
                status = os.fstat(found)
                size = status.st_blocks * 512 if stat.S_ISREG(status.st_mode) else 0
                if reason := self._budget.refusal(place, len(self._levels), size):
                    self.left_out.add(place, reason)
                    return
                self._budget.files += 1
                self._copy_found(level, found, status, name, place)
        except FileNotFoundError:
            return  # removed meanwhile
        except OSError as error:
            if not self._out or error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise
            self.left_out.add(place, f"it could not be copied ({os.strerror(error.errno or 0)})")

    def _copy_found(self, level: _Level, found: int, status: os.stat_result, name: str, place: str) -> None:
        if stat.S_ISDIR(status.st_mode) and not is_kernel_file(found):
            self._enter(level, found, status, name, place)
        elif stat.S_ISLNK(status.st_mode):
            self._copy_link(os.readlink("", dir_fd=found), level.goal, name, place)
        elif stat.S_ISREG(status.st_mode):
            with reopened(found) as content:
                copy_file(content, level.goal, name, self._budget, 0o1777 if self._out else 0o7777)
        else:
            self.left_out.add(place, "not a regular file")

    def _enter(self, level: _Level, found: int, status: os.stat_result, name: str, place: str) -> None:
        goal = made_directory(level.goal, name)
        try:
            with reopened(found, directory=True) as directory:
                origin = os.dup(directory)
                mode = stat.S_IMODE(status.st_mode) | (0o700 if self._out else 0)
                names = iter(self._listed(origin, place))
        except BaseException:
            os.close(goal)
            raise
        self._levels.append(_Level(origin, goal, f"{place}/", names, mode))

    def _leave(self) -> None:
        level = self._levels.pop()
        if level.mode >= 0:
            os.fchmod(level.goal, level.mode & (0o1777 if self._out else 0o7777))
        os.close(level.origin)
        os.close(level.goal)

    def _copy_link(self, destination: str, goal: int, name: str, place: str) -> None:
        if self._out and leads_out(destination, place):
            self.left_out.add(place, "a link that leads out of the directory", f", to {destination}")
            return
        clear(goal, name)
        os.symlink(destination, name, dir_fd=goal)


def leads_out(destination: str, place: str) -> bool:
    """Whether a link at ``place`` would, on this machine, point anywhere but into the copied tree."""
    parts = destination.split("/")
    ups = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    # ".." after a name may leave the tree, since the name may be a link itself.
    return destination.startswith("/") or ups >= len(place.split("/")) or ".." in parts[ups:]


def copy_file(content: int, parent: int, name: str, budget: Budget, modes: int = 0o1777) -> None:
    """Copies a regular file as it is now, without what is written to it meanwhile."""
    status = os.fstat(content)
    with fresh_file(parent, name) as copy:
        _copy_data(content, copy, status.st_size, budget)
        os.fchmod(copy, stat.S_IMODE(status.st_mode) & modes)
        os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy_data(content: int, copy: int, size: int, budget: Budget) -> None:
    """Keeps holes of sparse files, which take no space on either side."""
    place = 0
    while place < size:
        try:
            place = os.lseek(content, place, os.SEEK_DATA)
            end = min(os.lseek(content, place, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole from here on
                break
            end = size  # a file system without support for holes
        while place < end:
            chunk = os.pread(content, min(_CHUNK, end - place), place)
            if not chunk:
                return  # it was truncated meanwhile
            yield_turn()
            budget.bytes += len(chunk)
            if budget.bytes > budget.limits.bytes:
                raise OSError(errno.EFBIG, f"more than {budget.limits.bytes >> 20} MB")
            _write_at(copy, chunk, place)
            place += len(chunk)
    os.ftruncate(copy, size)


def _write_at(copy: int, chunk: bytes, place: int) -> None:
    view = memoryview(chunk)
    while view:
        written = os.pwrite(copy, view, place)
        view, place = view[written:], place + written


@contextmanager
def fresh_file(parent: int, name: str) -> Iterator[int]:
    try:
        clear(parent, name)
        file = os.open(name, _CREATE, 0o600, dir_fd=parent)
    except OSError as error:
        if error.errno != errno.EBUSY:  # a mounted file, such as /etc/hosts, is filled and not replaced
            raise
        file = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise
        os.ftruncate(file, 0)
    with closing(file):
        yield file


def made_directory(parent: int, name: str) -> int:
    """Opens a directory; replaces anything else of that name."""
    for _ in range(3):
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=parent)
        try:
            return os.open(name, _DIRECTORY, dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            clear(parent, name)
    raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)


def clear(parent: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)


def printable(text: str) -> str:
    shown = text if len(text) <= _NAME_TOLD else f"{text[:_NAME_TOLD]}…"
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in shown)
