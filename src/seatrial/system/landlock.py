"""Keeps a process from writing outside of a few folders, and from sending signals to others: Landlock of the kernel.

``service`` confines the API's process with it. Where that process keeps the user id of root, it would otherwise still
write whatever root owns. A rule holds for this process and its children, and cannot be undone.
Knows Linux and nothing of Seatrial. Changes of mode and owner are not covered; Landlock has no rule for them.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System calls, the same on every architecture."""
_OLDEST = 3
"""Before it, moving a file between two folders could only be forbidden as a whole, and truncation not at all."""
_SCOPES_SINCE = 6
_ASK_VERSION = 1
_BENEATH = 1
_WRITE_FILE, _REMOVE_DIR, _REMOVE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 4, 1 << 5, 1 << 13, 1 << 14
_MAKE = 0x7F << 6  # character devices, folders, files, sockets, FIFOs, block devices, links
_CHANGES = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE | _REFER | _TRUNCATE
_SCOPES = 0b11  # abstract sockets and signals


def confine_writes(folders: Iterable[Path]) -> None:
    """Only what is in these folders can be written, made or removed from now on. Raises ``OSError`` where the kernel
    has no Landlock, or one that is too old. Devices such as ``/dev/null`` stay open."""
    version = _call(_CREATE_RULESET, None, 0, _ASK_VERSION)
    if version < _OLDEST:
        raise OSError(95, f"Landlock {version} of this kernel is too old")
    about = struct.pack("=QQQ", _CHANGES, 0, _SCOPES if version >= _SCOPES_SINCE else 0)
    size = 24 if version >= _SCOPES_SINCE else 8
    ruleset = _call(_CREATE_RULESET, about, size, 0)
    try:
        for folder in folders:
            _allow(ruleset, folder, _CHANGES)
        _allow(ruleset, Path("/dev"), _WRITE_FILE | _TRUNCATE)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, folder: Path, rights: int) -> None:
    descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        _call(_ADD_RULE, ruleset, _BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: int | bytes | None) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = int(library.syscall(ctypes.c_long(number), *wide))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
