"""The system call ``openat2`` of Linux 5.6, which restricts how a path is resolved. Python does not provide it.

``sandboxes.host.in_root`` uses it to open files of sandboxes, and ``removal`` to remove trees.
"""

from __future__ import annotations

import ctypes
import errno
import os
from functools import cache

NO_XDEV = 0x01
"""Do not cross mount points."""
NO_MAGICLINKS = 0x02
"""Do not follow magic links of ``/proc``."""
NO_SYMLINKS = 0x04
"""Do not follow links."""
IN_ROOT = 0x10
"""Use the directory as ``/``. Absolute links and ``..`` stay inside."""

_NUMBER = 437
"""The same on every architecture."""
_PATIENCE = 256
"""Maximum calls. If a path contains ``..``, a rename anywhere on the machine makes the kernel return EAGAIN."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def openat2(directory: int, path: str, flags: int, resolve: int) -> int:
    """Opens an existing file. Raises ``OSError``, with ``ENOSYS`` if the kernel does not know the call."""
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
    """Whether the kernel, and the system call filter of this process, allow the call."""
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
