"""Blobs in memory, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from seatrial.errors import InvalidInput, NotFound
from seatrial.ports.blobs import BlobInfo, checked_key

_CHUNK = 1 << 20


class MemoryBlobs:
    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._blobs: dict[str, bytes] = {}
        self._written: dict[str, datetime] = {}
        self._clock = clock

    async def put_file(self, key: str, source: Path) -> int:
        data = source.read_bytes()
        await self.put_bytes(key, data)
        return len(data)

    async def take_file(self, key: str, source: Path) -> int:
        return await self.put_file(key, source)

    async def take_folder(self, prefix: str, root: Path, names: Sequence[str]) -> list[int]:
        return [await self.take_file(f"{prefix}/{name}", root / name) for name in names]

    async def put_bytes(self, key: str, data: bytes) -> None:
        self._blobs[checked_key(key)] = bytes(data)
        self._written[key] = self._clock()

    async def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        data = self._blob(key)
        return data[start:] if length is None else data[start : start + length]

    async def stream(self, key: str, start: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        data = await self.read(key, start, length)
        for start in range(0, len(data), _CHUNK):
            yield data[start : start + _CHUNK]

    async def info(self, key: str) -> BlobInfo:
        return BlobInfo(key=key, size=len(self._blob(key)), modified_at=self._written[key])

    async def list(self, prefix: str) -> AsyncIterator[BlobInfo]:
        below = f"{checked_key(prefix)}/" if prefix else ""
        for key, data in list(self._blobs.items()):
            if key.startswith(below):
                yield BlobInfo(key=key, size=len(data), modified_at=self._written[key])

    async def delete(self, prefix: str) -> int:
        if not prefix:
            raise InvalidInput("Give a prefix: deleting all files at once is not allowed.", field="prefix")
        below = checked_key(prefix) + "/"
        doomed = [key for key in self._blobs if key == prefix or key.startswith(below)]
        for key in doomed:
            del self._blobs[key]
        return len(doomed)

    def _blob(self, key: str) -> bytes:
        if checked_key(key) not in self._blobs:
            raise NotFound(f"There is no file {key}.")
        return self._blobs[key]
