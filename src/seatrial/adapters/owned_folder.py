"""A folder that may belong to an account without rights, as root opens, makes and fills it. Used by ``blobs_files``."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from seatrial.system.file_owner import Account, act_for_owner, owner_of


def open_folder(folder: Path) -> tuple[int, Account | None]:
    """The folder, and whom to act for in it. Where the folder around it belongs to an account, this one does too: the
    account may have put a link in its place."""
    around = os.open(folder.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        owner = owner_of(around)
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | (os.O_NOFOLLOW if owner else 0)
        opened = os.open(folder.name, flags, dir_fd=around)
    finally:
        os.close(around)
    if owner is not None and os.fstat(opened).st_uid != owner.uid:
        os.close(opened)
        raise PermissionError(errno.EPERM, f"it does not belong to user {owner.uid}, as the folder around it does")
    return opened, owner or owner_of(opened)


class Handle:
    """An open file, closed when nobody uses it any more. A thread goes on with it after its caller has given up, and a
    number that was closed meanwhile might be another file's."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


def move_into(parent: Handle, name: str, source: Path, uid: int) -> bool:
    """Runs with the rights of this process. ``parent`` may be anything that a link of the account leads to."""
    try:
        facts = os.fstat(parent.number)
        if os.geteuid() == 0 and facts.st_uid != uid:
            return False
        if os.geteuid() == 0 and uid != 0:
            _give(os.fspath(source), source.lstat(), Account(uid, facts.st_gid))
        os.rename(source, name, dst_dir_fd=parent.number)
    except OSError:
        return False
    return True


def _give(path: str, facts: os.stat_result, owner: Account) -> None:
    """A file, or a folder with all that is in it, of a place that only root can write."""
    if stat.S_ISDIR(facts.st_mode):
        with os.scandir(path) as entries:
            for entry in entries:
                _give(entry.path, entry.stat(follow_symlinks=False), owner)
    elif stat.S_ISREG(facts.st_mode) and facts.st_nlink > 1:
        raise OSError(errno.EMLINK, "it has another name", path)
    os.chown(path, owner.uid, owner.gid, follow_symlinks=False)


def make_folder(folder: Path) -> None:
    """For the owner of the nearest folder that is there."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    around = os.open(folder.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with ThreadPoolExecutor(1) as thread, suppress(FileExistsError):
            thread.submit(_make_for_owner, around, folder.name).result()
    finally:
        os.close(around)


def _make_for_owner(around: int, name: str) -> None:
    act_for_owner(around)
    os.mkdir(name, dir_fd=around)
