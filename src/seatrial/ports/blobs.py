"""The store of files. Keys are relative paths with ``/`` and without ``..``. Write a file before you refer to it.

Guarantees: a key is visible with its whole content or not at all; ``put`` over an existing key replaces it whole.
Every implementation passes ``tests/contracts/blobs``. Unknown keys raise ``NotFound``, impossible ones
``InvalidInput``, and a store that does not answer ``StoreUnavailable``. ``a`` and ``a/b`` cannot both be keys, like a
file and a folder of the same name.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from seatrial.domain.frozen import Frozen
from seatrial.errors import InvalidInput

PLAIN_KEY = re.compile(r"[A-Za-z0-9._/ +@,=~-]+")
"""Keys that every implementation can use unchanged."""
_GROWING = re.compile(r"[%#]")
"""Characters that take three bytes when they are escaped."""
_LONGEST_NAME = 200
"""In bytes, after escaping. File systems allow 255; the rest is for names of temporary files."""
_LONGEST_KEY = 900
"""In bytes; object stores allow 1024."""


class BlobInfo(Frozen):
    key: str
    size: int
    modified_at: datetime
    """When it was written, by the clock of the place where it is."""


def checked_key(key: str) -> str:
    """Returns the key if every implementation can store it. Names come from sandboxes, so they are untrusted."""
    names = key.split("/")
    if any(name in ("", ".", "..") for name in names):
        raise InvalidInput(f"{key!r} is not a key: it must be relative, without empty, '.' or '..' parts.", field="key")
    if not key.isprintable() or "\\" in key:
        raise InvalidInput(f"{key!r} is not a key: it has control characters or backslashes.", field="key")
    if not has_room(key):
        raise InvalidInput(f"{key[:80]!r}… is not a key: it is too long.", field="key")
    return key


def has_room(key: str) -> bool:
    """Whether neither the key nor a part of it is too long."""
    lengths = [
        len(name.encode("utf-8", "surrogateescape")) + 2 * len(_GROWING.findall(name)) for name in key.split("/")
    ]
    return sum(lengths) + len(lengths) - 1 <= _LONGEST_KEY and max(lengths) <= _LONGEST_NAME


class Blobs(Protocol):
    async def put_file(self, key: str, source: Path) -> int:
        """Streams the file, so that memory use stays constant. Returns its size."""

    async def take_file(self, key: str, source: Path) -> int:
        """Like ``put_file``, but may move the file instead of copying it."""

    async def take_folder(self, prefix: str, root: Path, names: Sequence[str]) -> list[int]:
        """Takes all files of a folder, under ``prefix/``. ``names`` are the files; returns their sizes."""

    async def put_bytes(self, key: str, data: bytes) -> None: ...

    async def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """Reads a range. A range past the end returns what exists."""

    def stream(self, key: str, start: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """The same range as ``read``, in pieces of a few megabytes: memory use does not grow with the file."""

    async def info(self, key: str) -> BlobInfo: ...

    def list(self, prefix: str) -> AsyncIterator[BlobInfo]:
        """Everything under ``prefix/`` (or all, if it is empty), in no particular order."""

    async def delete(self, prefix: str) -> int:
        """Deletes everything under ``prefix/`` and the key itself. Returns how many."""
