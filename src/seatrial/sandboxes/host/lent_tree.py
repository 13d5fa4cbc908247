"""A directory of this machine, lent to a sandbox: mounted read-only in it while it runs, instead of copied.

Sandboxes borrow the terminal kit and the kits of agents. The mount is made outside and carried into the sandbox by
descriptor, so that no path of the sandbox is looked up with the rights of this process. It exists only in the sandbox's
own mount namespaces: what removes a sandbox's files on this machine never meets it. The system calls are those of Linux
5.12.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from seatrial.sandboxes.host.in_root import SandboxRoot
from seatrial.sandboxes.host.private_mounts import MS_PRIVATE, libc

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
"""The same on every architecture."""
_AT_FDCWD, _AT_EMPTY_PATH = -100, 0x1000
_CLONE = 1
_READ_ONLY, _NOSUID, _NODEV = 1, 2, 4
_FROM_DESCRIPTOR, _TO_DESCRIPTOR = 0x04, 0x40


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


class LentTree:
    """A read-only mount of a directory, which is not mounted anywhere yet. For a thread of ``PrivateMounts``."""

    def __init__(self, directory: Path) -> None:
        """Raises ``OSError``, with ``ENOSYS`` on an old kernel."""
        self._tree = _call(_OPEN_TREE, _AT_FDCWD, os.fsencode(directory), _CLONE | os.O_CLOEXEC)
        wanted = _Attributes(_READ_ONLY | _NOSUID | _NODEV, 0, MS_PRIVATE, 0)
        try:
            _call(_MOUNT_SETATTR, self._tree, b"", _AT_EMPTY_PATH, ctypes.byref(wanted), ctypes.sizeof(wanted))
        except OSError:
            os.close(self._tree)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._tree)

    def move_to(self, place: int) -> None:
        """Mounts it at a directory of the mount namespace that the calling thread is in. Raises ``OSError``."""
        _call(_MOVE_MOUNT, self._tree, b"", place, b"", _FROM_DESCRIPTOR | _TO_DESCRIPTOR)


@contextmanager
def empty_place(root: int, path: str) -> Iterator[int]:
    """An empty directory of a sandbox, made where it is missing. Raises ``OSError``.

    No link is followed, and nothing is covered: the sandbox's processes may have prepared the place."""
    with SandboxRoot(root).made_directory(path, follow=False) as place:
        with os.scandir(place) as entries:
            if next(entries, None) is not None:
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        yield place


def _call(number: int, *arguments: object) -> int:
    given = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    result: int = libc().syscall(ctypes.c_long(number), *given)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
