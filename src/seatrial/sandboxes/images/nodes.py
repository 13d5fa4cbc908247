"""Device nodes in the layers of images that others made: found without opening anything, and removed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from seatrial.errors import ImageFault


def remove_nodes(folders: Iterable[Path]) -> int:
    """How many there were. A character device 0:0 is how an overlay marks what a layer deleted, and stays."""
    try:
        return sum(_remove_nodes_below(folder) for folder in folders)
    except OSError as error:  # a path that is too long, for example
        raise ImageFault(f"The image has folders that cannot be looked into: {error.strerror}.") from error


def _remove_nodes_below(folder: Path) -> int:
    removed = 0
    for parent, folders_inside, files in os.walk(folder, onerror=_raise):
        for name in (*folders_inside, *files):
            path = Path(parent, name)
            about = path.lstat()
            if stat.S_ISBLK(about.st_mode) or (stat.S_ISCHR(about.st_mode) and about.st_rdev != 0):
                path.unlink()
                removed += 1
    return removed


def _raise(error: OSError) -> None:
    raise error
