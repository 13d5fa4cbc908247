"""Where files are kept. Keys are ``/``-separated, relative, without ``..``; whoever writes, writes then references.

Guarantees: a key is visible with its whole content or not at all; ``put`` over an existing key replaces it whole.
Every implementation passes ``tests/contracts/blobs``. Unknown keys raise ``NotFound``, impossible ones
``InvalidInput``, and a place that does not answer ``StoreUnavailable``. A key never lies under another key: ``a`` and
``a/b`` exclude each other, as file and folder do.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Protocol

from seatrial.domain.frozen import Frozen
from seatrial.errors import InvalidInput

PLAIN_KEY = re.compile(r"[A-Za-z0-9._/ +@,=~-]+")
"""Keys that stand in every place as they are."""
_GROWING = re.compile(r"[%#]")
"""What takes three bytes once it is escaped."""
_LONGEST_NAME = 200
"""In bytes, when it is escaped; file systems allow 255, and a name may be written beside its final place."""
_LONGEST_KEY = 900
"""In bytes; object stores allow 1024."""


class BlobInfo(Frozen):
    key: str
    size: int


def checked_key(key: str) -> str:
    """The key, if every implementation can hold it. Names come from sandboxes, so this is a border."""
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
        """Streams the file; memory stays flat. Returns its size."""
        ...

    async def take_file(self, key: str, source: Path) -> int:
        """``put_file`` of a file that its owner needs no longer: it may be moved instead of copied."""
        ...

    async def take_folder(self, prefix: str, root: Path, names: Sequence[str]) -> list[int]:
        """``take_file`` of all that is in a folder, under ``prefix/``. ``names`` are its files; returns their sizes."""
        ...

    async def put_bytes(self, key: str, data: bytes) -> None: ...

    async def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """A range; past the end gives what is there."""
        ...

    def stream(self, key: str) -> AsyncIterator[bytes]: ...

    async def info(self, key: str) -> BlobInfo: ...

    def list(self, prefix: str) -> AsyncIterator[BlobInfo]:
        """Everything under ``prefix/`` (or all, if it is empty), in no particular order."""
        ...

    async def delete(self, prefix: str) -> int:
        """Everything under ``prefix/`` and the key itself; says how many."""
        ...
