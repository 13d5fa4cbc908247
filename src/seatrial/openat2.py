"""The one system call that resolves a path under rules: ``openat2`` of Linux 5.6.

``sandboxes.host.in_root`` reaches into sandboxes with it, and ``removal`` takes trees apart. Python has no name for it.
"""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache

NO_XDEV = 0x01
"""Cross no mount point."""
NO_MAGICLINKS = 0x02
"""Follow none of the links below ``/proc`` that lead to where a process is."""
NO_SYMLINKS = 0x04
"""Follow no link at all."""
IN_ROOT = 0x10
"""Take the directory for ``/``: absolute links and ``..`` stay in it."""

_NUMBER = 437
"""The same on every architecture."""
_PATIENCE = 256
"""A rename anywhere on the machine makes the kernel ask for another try where a path has ``..`` in it."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def openat2(directory: int, path: str, flags: int, resolve: int) -> int:
    """Opens something that is there. Raises ``OSError``: ``ENOSYS`` where the kernel has no such call."""
    how = _How(flags | os.O_CLOEXEC, 0, resolve)
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise OSError(errno.EINVAL, "embedded null byte")
    code = errno.EAGAIN
    for _ in range(_PATIENCE):
        file: int = _libc().syscall(_NUMBER, directory, encoded, ctypes.byref(how), ctypes.sizeof(how))
        if file >= 0:
            return file
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code), path)


@cache
def has_openat2() -> bool:
    """Whether this kernel, and whatever filters this process's calls, lets it through."""
    try:
        os.close(openat2(-100, "/", os.O_PATH | os.O_DIRECTORY, NO_MAGICLINKS))
    except OSError:
        return False
    return True


@cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library
