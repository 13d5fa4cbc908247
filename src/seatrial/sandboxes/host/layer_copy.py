"""Copies an image's layer over a directory: the root of a sandbox on a machine without any overlay.

``root_mount`` calls it. Only regular files, folders and links are copied; device nodes, sockets and FIFOs of an image
are left out and never opened. Nothing here is recursive, since a layer may have any depth.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

from seatrial.system.removal import remove_tree

_OPAQUE = "trusted.overlay.opaque"


def apply_layer(layer: Path, target: Path) -> None:
    """Copies one layer over the target and removes what the layer marks as deleted. Blocking.

    Folders get their owner, mode and times last, after their content is written."""
    folders: list[tuple[Path, Path]] = []
    pending = [(layer, target)]
    while pending:
        source, copy = pending.pop()
        if _is_opaque(source):
            for child in copy.iterdir():
                _remove(child)
        folders.append((source, copy))
        below = (_copy_entry(entry, copy / entry.name) for entry in source.iterdir())
        pending.extend(pair for pair in below if pair is not None)
    for source, copy in reversed(folders[1:]):
        _copy_status(source, copy)


def _copy_entry(source: Path, copy: Path) -> tuple[Path, Path] | None:
    """The two folders, if it is one: their content is copied later."""
    status = source.lstat()
    if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:  # an overlay's mark of a deleted file
        _remove(copy)
    elif stat.S_ISDIR(status.st_mode):
        if copy.is_symlink() or not copy.is_dir():
            _remove(copy)
            copy.mkdir()
        return source, copy
    elif stat.S_ISLNK(status.st_mode):
        _remove(copy)
        copy.symlink_to(source.readlink())
        _copy_status(source, copy)
    elif stat.S_ISREG(status.st_mode):
        _remove(copy)
        shutil.copyfile(source, copy, follow_symlinks=False)
        _copy_status(source, copy)
    return None


def _copy_status(source: Path, copy: Path) -> None:
    status = source.lstat()
    os.chown(copy, status.st_uid, status.st_gid, follow_symlinks=False)
    shutil.copystat(source, copy, follow_symlinks=False)


def _is_opaque(directory: Path) -> bool:
    try:
        return os.getxattr(directory, _OPAQUE) == b"y"
    except OSError:
        return False


def _remove(path: Path) -> None:
    """Removes what an earlier layer brought."""
    if problem := remove_tree(path):
        raise OSError(errno.EIO, problem, str(path))
