"""Device nodes in the layers of images that others made: found without opening anything, and removed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from seatrial.errors import ImageFault


def remove_nodes(folders: Iterable[Path]) -> int:
    """How many there were. A character device 0:0 is how an overlay marks what a layer deleted, and stays."""
    removed = 0
    for folder in folders:
        for parent, folders_inside, files in os.walk(folder, onerror=_refuse):
            for name in (*folders_inside, *files):
                path = Path(parent, name)
                about = path.lstat()
                is_node = stat.S_ISBLK(about.st_mode) or (stat.S_ISCHR(about.st_mode) and about.st_rdev != 0)
                if is_node:
                    path.unlink()
                    removed += 1
    return removed


def _refuse(error: OSError) -> None:
    raise ImageFault(f"The image has folders that cannot be looked into: {error.strerror}.") from error
