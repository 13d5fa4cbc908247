"""Removes directory trees from sandboxes. All code here removes trees with this module.

Such a tree may be deeper than a recursion or a path can be, and wider than memory, so nothing is opened by its full
path. Below a certain depth, directories are moved to the top of the tree first, so that depth costs neither memory nor
descriptors. No link is followed and no mount point is crossed. Attributes that protect files are removed. What cannot
be removed is reported and left for the next time.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
import struct
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seatrial.system.fair_threads import yield_turn
from seatrial.system.openat2 import NO_MAGICLINKS, NO_SYMLINKS, NO_XDEV, has_openat2, openat2

_log = logging.getLogger(__name__)
_PATIENCE_SEC = 300.0
"""Maximum time for one tree. It takes this long only if a process keeps adding files."""
_DEEPEST = 20
"""Maximum depth of nested directories. Each level needs two descriptors."""
_MOST_PROBLEMS = 5
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
_PROTECTED = 0x10 | 0x20
"""The attributes *immutable* and *append only*."""


def remove_tree(path: Path, patience_sec: float = _PATIENCE_SEC) -> str:
    """Removes a file or tree. Returns why a part remains, or an empty text. Raises no ``OSError``."""
    removal = _Removal(patience_sec)
    try:
        with _closing(os.open(path.parent, _DIRECTORY & ~os.O_NOFOLLOW)) as parent:
            if stat.S_ISDIR(os.stat(path.name, dir_fd=parent, follow_symlinks=False).st_mode):
                with _entered(path.name, parent) as top:
                    removal.empty(top)
                _insist(os.rmdir, path.name, parent)
            else:
                _insist(os.unlink, path.name, parent)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return removal.problem or _reason(error)
    return ""


def empty_directory(directory: int, patience_sec: float = _PATIENCE_SEC) -> str:
    """The same for the content of an open directory, which is kept."""
    removal = _Removal(patience_sec)
    try:
        removal.empty(directory)
        with os.scandir(directory) as entries:
            left = next(entries, None)
    except OSError as error:
        return _reason(error)
    return removal.problem or "a process keeps adding files" if left is not None else ""


@contextmanager
def scratch_directory(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A new directory for an untrusted tree, removed when the block ends.

    ``tempfile.TemporaryDirectory`` removes trees recursively and fails for deep ones."""
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield path
    finally:
        if problem := remove_tree(path):
            _log.warning("%s could not be removed: %s", path, problem)


class _Removal:
    """The removal of one tree."""

    def __init__(self, patience_sec: float) -> None:
        self._until = time.monotonic() + patience_sec
        self._prefix = f".removed-{uuid.uuid4().hex[:12]}-"
        self._moved = 0
        self._top = -1
        self._problems: dict[str, str] = {}

    @property
    def problem(self) -> str:
        return "; ".join(f"{name!a}: {reason}" for name, reason in self._problems.items())

    def empty(self, top: int) -> None:
        self._top = top
        self._empty(top, 1)

    def _empty(self, directory: int, depth: int) -> None:
        """Repeats until the directory is empty, or until nothing more can be removed."""
        while True:
            done, moved = 0, self._moved
            with os.scandir(directory) as entries:
                for entry in entries:
                    yield_turn()
                    if time.monotonic() > self._until:
                        self._note(entry.name, "the time limit was reached")
                        return
                    done += self._remove(directory, entry, depth)
            if not done and self._moved == moved:
                return

    def _remove(self, parent: int, entry: os.DirEntry[str], depth: int) -> bool:
        """Returns whether the entry is gone."""
        name = entry.name
        try:
            if not entry.is_dir(follow_symlinks=False):
                _insist(os.unlink, name, parent)
            elif depth >= _DEEPEST:
                self._move_up(name, parent)
            else:
                with _entered(name, parent) as directory:
                    self._empty(directory, depth + 1)
                _insist(os.rmdir, name, parent)
        except FileNotFoundError:
            return True
        except OSError as error:
            self._note(name, _reason(error))
            return False
        return True

    def _move_up(self, name: str, parent: int) -> None:
        with _entered(name, parent):  # raises for a mount point, which is not moved
            place = f"{self._prefix}{self._moved}"
            _insist(lambda old, dir_fd: os.rename(old, place, src_dir_fd=dir_fd, dst_dir_fd=self._top), name, parent)
        self._moved += 1

    def _note(self, name: str, reason: str) -> None:
        if len(self._problems) < _MOST_PROBLEMS:
            self._problems[name] = reason


def _reason(error: OSError) -> str:
    if error.errno in (errno.EXDEV, errno.EBUSY):
        return "something is mounted there"
    return os.strerror(error.errno or 0)


@contextmanager
def _entered(name: str, parent: int) -> Iterator[int]:
    """Opens a directory and makes it readable and writable for its owner. Raises for a mount point."""
    try:
        directory = _open(name, parent)
    except PermissionError:
        with _closing(os.open(name, _LOOK, dir_fd=parent)) as found:
            Path(f"/proc/self/fd/{found}").chmod(0o700)
        directory = _open(name, parent)
    with _closing(directory):
        if os.geteuid() != 0:
            with suppress(OSError):
                os.fchmod(directory, 0o700)
        yield directory


def _open(name: str, parent: int) -> int:
    if has_openat2():
        return openat2(parent, name, _DIRECTORY, NO_XDEV | NO_SYMLINKS | NO_MAGICLINKS)
    directory = os.open(name, _DIRECTORY, dir_fd=parent)
    if os.fstat(directory).st_dev != os.fstat(parent).st_dev:
        os.close(directory)
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    return directory


def _insist(call: Callable[..., object], name: str, parent: int) -> None:
    """Calls it, and again without protecting attributes if it was not permitted."""
    try:
        call(name, dir_fd=parent)
    except PermissionError:
        _unprotect(parent)
        with suppress(OSError), _closing(os.open(name, _LOOK, dir_fd=parent)) as found:
            if stat.S_ISREG(mode := os.fstat(found).st_mode) or stat.S_ISDIR(mode):
                with _closing(os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_CLOEXEC)) as entry:
                    _unprotect(entry)
        call(name, dir_fd=parent)


def _unprotect(file: int) -> None:
    with suppress(OSError):
        flags = struct.unpack("L", fcntl.ioctl(file, _GET_FLAGS, bytes(struct.calcsize("L"))))[0]
        if flags & _PROTECTED:
            fcntl.ioctl(file, _SET_FLAGS, struct.pack("L", flags & ~_PROTECTED))


@contextmanager
def _closing(file: int) -> Iterator[int]:
    try:
        yield file
    finally:
        os.close(file)
