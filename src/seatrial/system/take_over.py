"""Gives a home to an account, once. Root does it before the account has a process that could interfere.

A folder is given after all that is in it, so the account can change only what is finished, and what is left after an
interruption is found again. Nothing is reached through a link. Only files that belong to the folder's owner so far are
given, and none with a second hard link, which might be a file of another account.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import stat
from pathlib import Path

from seatrial.system.file_owner import Account

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ITSELF = 0x1000 | 0x100  # AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW


def take_over(folder: Path, account: Account) -> list[str]:
    """Returns the names of what was left as it is. Quick if the folder belongs to the account already."""
    top = os.open(folder, _FOLDER & ~os.O_NOFOLLOW)
    try:
        fcntl.flock(top, fcntl.LOCK_EX)
        before = os.fstat(top).st_uid
        if before == account.uid:
            return []
        left: list[str] = []
        _give_folder(top, before, account, left)
        return left
    finally:
        os.close(top)


def _give_folder(folder: int, before: int, account: Account, left: list[str]) -> None:
    for name in os.listdir(folder):
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if facts.st_uid == account.uid:
            continue  # of an interrupted start; a folder is given last
        handle = os.open(name, _FOLDER if stat.S_ISDIR(facts.st_mode) else os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
        try:
            facts = os.fstat(handle)  # of what is open, whatever has the name now
            if facts.st_uid != before:
                left.append(name)
            elif stat.S_ISDIR(facts.st_mode):
                _give_folder(handle, before, account, left)
            elif stat.S_ISLNK(facts.st_mode) or (stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1):
                _give(handle, account)
            else:
                left.append(name)
        finally:
            os.close(handle)
    os.fchown(folder, account.uid, account.gid)


def _give(handle: int, account: Account) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fchownat(handle, b"", ctypes.c_uint(account.uid), ctypes.c_uint(account.gid), _ITSELF) != 0:
        raise OSError(ctypes.get_errno(), "fchownat")
