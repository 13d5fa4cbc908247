"""A kit as it lies on the shelf: the tree, what is in it, and its digest."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from seatrial.domain.frozen import Frozen

_LIBRARY_MODE, _PROGRAM_MODE = 0o644, 0o755


class Kit(Frozen):
    """One agent of one version for one architecture, with its runtime. Its tree does not change once it is made."""

    agent: str
    version: str
    arch: str
    libc: str
    """The C library that it brings."""
    program: str
    """The command that Harbor's agent calls."""
    digest: str
    """Over the content of the tree."""
    size_bytes: int
    made_at: datetime


def settle_modes(tree: Path) -> None:
    """Lets all users read and run the tree, and nobody write or gain rights. Links are not followed."""
    for path in _entries(tree):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            path.chmod(0o755)
        elif stat.S_ISREG(mode):
            path.chmod(_PROGRAM_MODE if mode & 0o111 else _LIBRARY_MODE)
        elif not stat.S_ISLNK(mode):
            path.unlink()  # a socket or a device has no place in a package


def digest_of(tree: Path) -> str:
    """``sha256:`` and 64 hex digits over each path, its kind and its content. Blocking; takes a second for 400 MB."""
    whole = hashlib.sha256(b"seatrial kit 1\n")
    for path in sorted(_entries(tree), key=lambda entry: os.fsencode(entry.relative_to(tree))):
        mode, name = path.lstat().st_mode, os.fsencode(path.relative_to(tree))
        if stat.S_ISDIR(mode):
            kind, content = b"directory", b""
        elif stat.S_ISLNK(mode):
            kind, content = b"link", hashlib.sha256(os.fsencode(path.readlink())).digest()
        elif not stat.S_ISREG(mode):
            kind, content = b"other", b""  # in a layer: an overlay's mark of a deleted file
        else:
            kind = b"program" if mode & 0o111 else b"file"
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
        # Length prefixes: no choice of names and contents can imitate another tree.
        whole.update(b"%s %d " % (kind, len(name)) + name + content)
    return f"sha256:{whole.hexdigest()}"


def size_of(tree: Path) -> int:
    return sum(path.lstat().st_size for path in _entries(tree))


def _entries(tree: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(tree):
        for name in (*folders, *files):
            yield Path(parent, name)
