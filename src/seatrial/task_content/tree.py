"""The files of a task in a fixed order. Used for digests, packing and copying.

Excluded: version control (``.git``), byte-code caches (``__pycache__``) and ``.DS_Store``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

IGNORED_NAMES = frozenset({".git", "__pycache__", ".DS_Store"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or symbolic link of a tree (or a special file, which callers refuse)."""

    path: str
    """Relative to the tree's root, with ``/``."""
    source: Path
    mode: int
    size: int

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_executable(self) -> bool:
        return bool(self.mode & 0o100)


def walk(root: Path) -> Iterator[Entry]:
    """Everything below ``root`` but folders, sorted by path. Links are entries and are never followed."""
    yield from sorted(_scan(root), key=lambda entry: entry.path)


def _scan(root: Path) -> Iterator[Entry]:
    """Not recursive: a tree may be deeper than Python's recursion limit."""
    folders = [(root, "")]
    while folders:
        folder, prefix = folders.pop()
        with os.scandir(folder) as items:
            for item in items:
                if item.name in IGNORED_NAMES:
                    continue
                path = f"{prefix}{item.name}"
                if item.is_dir(follow_symlinks=False):
                    folders.append((Path(item.path), f"{path}/"))
                else:
                    found = item.stat(follow_symlinks=False)
                    yield Entry(path, Path(item.path), found.st_mode, found.st_size)
