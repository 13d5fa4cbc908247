"""Makes a few paths reachable for an account that may not pass the folders above them, such as ``/root``.

The process gets a mount namespace of its own. There, a folder that the account may not pass is covered by an empty one,
in which only the given paths appear, under their usual names. So the account sees no more of that folder than it needs,
and nothing is changed on the machine. Knows Linux and nothing of Seatrial.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from seatrial.system.file_owner import Account

_NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _SLAVE = 0x2, 0x4, 0x8, 0x1000, 0x4000, 0x80000


def closed_folder(path: Path, account: Account) -> Path | None:
    """The first folder above ``path`` that the account may not pass."""
    for folder in reversed(path.absolute().parents):
        facts = folder.stat()
        shift = 6 if facts.st_uid == account.uid else 3 if facts.st_gid == account.gid else 0
        if not facts.st_mode >> shift & stat.S_IXOTH:
            return folder
    return None


def show_paths(paths: Iterable[Path], account: Account) -> None:
    """The process must have one thread. Does nothing if the account can reach all of them already."""
    there = [path.absolute() for path in paths if path.exists()]
    wanted = list(dict.fromkeys(each for path in there for each in (path.resolve(), path)))
    if all(closed_folder(path, account) is None for path in wanted):
        return
    os.unshare(os.CLONE_NEWNS)
    _mount("none", Path("/"), None, _REC | _SLAVE)
    handles = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in wanted}
    try:
        for path, handle in handles.items():
            _show(path, handle, account)
    finally:
        for handle in handles.values():
            os.close(handle)


def _show(path: Path, handle: int, account: Account) -> None:
    covered = path.exists() is False
    while path.exists() and (closed := closed_folder(path, account)) is not None:
        _mount("tmpfs", closed, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "mode=755,size=1m")
        covered = True
    if not covered:
        return
    if stat.S_ISDIR(os.fstat(handle).st_mode):
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    else:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.touch()
    _mount(f"/proc/self/fd/{handle}", path, None, _BIND | _REC)


def _mount(source: str, target: Path, kind: str | None, flags: int, options: str = "") -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    given = (os.fsencode(source), os.fsencode(target), kind and kind.encode(), ctypes.c_ulong(flags), options.encode())
    if libc.mount(*given) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(target))
