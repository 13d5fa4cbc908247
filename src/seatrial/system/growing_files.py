"""Reads files that are still being written, with at most two system calls for a file that did not grow.

Used by ``engine.live.tail`` for the try's directory, and by sandboxes for theirs. The files may be hostile: links and
special files are never opened, and the number of names is limited.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

LONGEST_READ = 128 << 10
_MOST_NAMES = 64
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FileView:
    """One file at one moment: its size, and its content from ``start`` on."""

    name: str
    start: int
    size: int
    data: bytes = b""


def look_into(
    directory: int, prefix: str, seen: Mapping[str, int], wanted: Callable[[str], bool]
) -> Iterator[FileView]:
    """Regular files of an open directory, by ``prefix`` and name. ``seen``: how much of each was already read.

    A file that is now shorter was rewritten, and is read from its beginning.
    """
    with os.scandir(directory) as entries:
        for entry in islice(entries, _MOST_NAMES):
            name = prefix + entry.name
            if wanted(name):
                with suppress(OSError):  # removed, or not readable
                    yield from _look_at(directory, entry, name, seen.get(name, 0))


def _look_at(directory: int, entry: os.DirEntry[str], name: str, known: int) -> Iterator[FileView]:
    status = entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        return
    size = status.st_size
    start = known if known <= size else 0
    if size == start:
        yield FileView(name, start, size)
        return
    handle = os.open(entry.name, _LOOK, dir_fd=directory)
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):  # a special file, which must not be opened, may have replaced it
            yield FileView(name, start, size, _read(handle, start))
    finally:
        os.close(handle)


def _read(handle: int, start: int) -> bytes:
    file = os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(file, LONGEST_READ, start)
    finally:
        os.close(file)
