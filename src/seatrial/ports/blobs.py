"""Where files are kept. Keys are ``/``-separated, relative, without ``..``; whoever writes, writes then references.

Guarantees: a key is visible with its whole content or not at all; ``put`` over an existing key replaces it whole.
Every implementation passes ``tests/contracts/blobs``. Unknown keys raise ``NotFound``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

from seatrial.domain.frozen import Frozen


class BlobInfo(Frozen):
    key: str
    size: int


class Blobs(Protocol):
    async def put_file(self, key: str, source: Path) -> int:
        """Streams the file; memory stays flat. Returns its size."""
        ...

    async def put_bytes(self, key: str, data: bytes) -> None: ...

    async def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """A range; past the end gives what is there."""
        ...

    def stream(self, key: str) -> AsyncIterator[bytes]: ...

    async def info(self, key: str) -> BlobInfo: ...

    def list(self, prefix: str) -> AsyncIterator[BlobInfo]: ...

    async def delete(self, prefix: str) -> int:
        """Everything under ``prefix/`` and the key itself; says how many."""
        ...
