"""Root acts for the account that a folder belongs to: what lies in a home belongs to the home's owner.

The API's process answers everybody and runs as an account without rights, which owns the home. Workers and commands of
root use the same home. They must not follow a link that this account made, nor leave files that it cannot remove. So a
thread that works on the home's files takes the account's rights for files (``setfsuid``), and the kernel decides. Other
threads keep theirs, and no further process can trace or signal the thread. Knows Linux and nothing of Seatrial.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import pwd
import stat
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

NOBODYS_ID = 60999
"""Of the API's process where there is no account for it: above the numbers that are given to people, below those that
systemd gives to services."""
SERVICE_ACCOUNT = "seatrial"
_SETGROUPS = {"x86_64": 116, "aarch64": 159}
"""The library's function would change every thread."""
_CAPABILITY_VERSION = 0x20080522
_DAC_READ_SEARCH = 2
_ASK = 0xFFFFFFFF
_here = threading.local()


@dataclass(frozen=True, slots=True)
class Account:
    """A user and its group, by their numbers."""

    uid: int
    gid: int


def is_of_service(path: Path) -> bool:
    """Whether it belongs to the account of the API's process: root takes no orders from it."""
    numbers = {NOBODYS_ID}
    with suppress(KeyError):
        numbers.add(pwd.getpwnam(SERVICE_ACCOUNT).pw_uid)
    try:
        return os.geteuid() == 0 and not numbers.isdisjoint((path.lstat().st_uid, path.stat().st_uid))
    except OSError:
        return False


def owner_of(folder: Path | int) -> Account | None:
    """Whom this process has to act for in the folder; ``None`` if it writes as itself."""
    if os.geteuid() != 0:
        return None
    facts = os.stat(folder)  # noqa: PTH116 - also of a descriptor
    return Account(facts.st_uid, facts.st_gid) if facts.st_uid else None


def act_for_owner(folder: Path | int) -> None:
    """This thread has from now on, for files, the rights of the folder's owner. It looks again at each call, because
    the home may be given away meanwhile."""
    account = owner_of(folder)
    if account is not None and getattr(_here, "account", None) != account:
        act_as(account)


def act_as_oneself() -> None:
    """The end of ``act_as``: this thread has the rights of its process again."""
    if getattr(_here, "account", None) is not None:
        _libc().setfsuid(ctypes.c_uint(os.geteuid()))
        _libc().setfsgid(ctypes.c_uint(os.getegid()))
        _here.account = None


def act_as(account: Account) -> None:
    """This thread has the account's rights for files from now on, and no capability over files."""
    libc = _libc()
    number = _SETGROUPS.get(platform.machine())
    if number is not None and libc.syscall(ctypes.c_long(number), ctypes.c_long(0), None) != 0:
        raise OSError(ctypes.get_errno(), "setgroups")
    libc.setfsgid(ctypes.c_uint(account.gid))
    libc.setfsuid(ctypes.c_uint(account.uid))
    now = libc.setfsuid(ctypes.c_uint(_ASK)), libc.setfsgid(ctypes.c_uint(_ASK))  # changes nothing, tells the number
    if now != (account.uid, account.gid):
        raise OSError(errno.EPERM, f"cannot act as user {account.uid}")
    _here.account = account


def pass_every_folder() -> None:
    """This thread may search folders that its account may not, and read. For SQLite, which knows its file by the whole
    path only, in a home below a closed folder such as ``/root``. It still writes with the rights of its account."""
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION, 0))
    data = ctypes.create_string_buffer(24)
    libc = _libc()
    if libc.capget(header, data) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    words = list(struct.unpack("=6I", data.raw[:24]))
    words[0] |= 1 << _DAC_READ_SEARCH
    ctypes.memmove(data, struct.pack("=6I", *words), 24)
    if libc.capset(header, data) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def open_owned(path: Path, flags: int, mode: int = 0o600) -> int:
    """Opens a file of a home, or makes it (``O_CREAT``) for the home's owner. Follows no link, and raises
    ``PermissionError`` for a file of anybody else, as a hard link would give. For small files; blocks on no pipe."""
    owner = owner_of(path.parent)
    safe = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(path, flags & ~os.O_CREAT | safe)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
        file = _make(path, flags | safe, mode, owner)
    facts = os.fstat(file)
    if owner is not None and (facts.st_uid != owner.uid or not stat.S_ISREG(facts.st_mode)):
        os.close(file)
        raise PermissionError(errno.EPERM, f"it does not belong to user {owner.uid}, as its folder does", str(path))
    return file


def _make(path: Path, flags: int, mode: int, owner: Account | None) -> int:
    try:
        file = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:  # another process made it in this moment
        return os.open(path, flags & ~os.O_CREAT)
    if owner is not None:
        os.fchown(file, owner.uid, owner.gid)
    return file


@cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library
