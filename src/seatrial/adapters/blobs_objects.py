"""Blobs in S3, Google Cloud Storage or Azure, through obstore. Opened by ``wiring``.

This uses obstore's blocking calls in threads. Its asynchronous calls use threads of obstore, which abort the
interpreter if it exits while they report: a command would print its result and then fail.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import obstore
from obstore.exceptions import BaseError
from obstore.store import from_url

from seatrial.adapters.blob_paths import key_of, path_of
from seatrial.errors import InvalidInput, NotFound, StorageFull, StoreUnavailable
from seatrial.fair_threads import FairThreads
from seatrial.ports.blobs import BlobInfo

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_THREADS = 16
_FILES_AT_ONCE = 8
_RETRIES: Any = {"max_retries": 2, "retry_timeout": timedelta(seconds=10)}
"""Short, because a retry blocks a thread. Callers that can wait longer retry themselves."""
_SMALL = 64 << 10
_PART = 5 << 20
"""Larger files are sent in parts of this size, which is the smallest that object stores accept."""
_PARTS_AT_ONCE = 2
_CHUNK = 1 << 20


class ObjectBlobs:
    """Safe for concurrent use. Has no connection that must be closed."""

    def __init__(self, store: ObjectStore, place: str) -> None:
        """``place`` is what people know it by."""
        self._store = store
        self._place = place
        self._threads = FairThreads("blobs", _THREADS)

    @classmethod
    def at(cls, url: str, **options: Any) -> Self:
        """``s3://bucket/prefix``, ``gs://…``, ``az://…``; credentials from where that cloud's tools look for them."""
        try:
            return cls(from_url(url, **{"retry_config": _RETRIES, **options}), url)
        except (BaseError, ValueError) as fault:
            raise InvalidInput(f"Files cannot be kept at {url}: {_first_line(fault)}", field="blobs_url") from fault

    async def put_file(self, key: str, source: Path) -> int:
        size = source.stat().st_size
        if size <= _SMALL:  # most files of a trial; reading them at once takes a third less time
            data = source.read_bytes()
            await self.put_bytes(key, data)
            return len(data)
        with self._writing(key):
            await self._threads.run(
                obstore.put, self._store, path_of(key), source, chunk_size=_PART, max_concurrency=_PARTS_AT_ONCE
            )
        return (await self.info(key)).size

    async def take_file(self, key: str, source: Path) -> int:
        return await self.put_file(key, source)

    async def take_folder(self, prefix: str, root: Path, names: Sequence[str]) -> list[int]:
        taken: list[int] = []
        for start in range(0, len(names), _FILES_AT_ONCE):
            some = names[start : start + _FILES_AT_ONCE]
            taken += await asyncio.gather(*(self.take_file(f"{prefix}/{name}", root / name) for name in some))
        return taken

    async def put_bytes(self, key: str, data: bytes) -> None:
        with self._writing(key):
            await self._threads.run(obstore.put, self._store, path_of(key), data)

    async def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        size = (await self.info(key)).size
        end = size if length is None else min(start + length, size)
        if start >= end:
            return b""
        with _boundary(key):
            return bytes(await self._threads.run(obstore.get_range, self._store, path_of(key), start=start, end=end))

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        with _boundary(key):
            found = await self._threads.run(obstore.get, self._store, path_of(key))
            async for piece in self._in_threads(found.stream(min_chunk_size=_CHUNK)):
                yield bytes(piece)

    async def info(self, key: str) -> BlobInfo:
        with _boundary(key):
            found = await self._threads.run(obstore.head, self._store, path_of(key))
        return BlobInfo(key=key, size=found["size"])

    async def list(self, prefix: str) -> AsyncIterator[BlobInfo]:
        with _boundary(prefix):
            async for batch in self._in_threads(obstore.list(self._store, path_of(prefix) if prefix else None)):
                for found in batch:
                    yield BlobInfo(key=key_of(found["path"]), size=found["size"])

    async def delete(self, prefix: str) -> int:
        if not prefix:
            raise InvalidInput("Give a prefix: deleting all files at once is not allowed.", field="prefix")
        doomed = [path_of(found.key) async for found in self.list(prefix)]
        try:
            await self.info(prefix)
            doomed.append(path_of(prefix))
        except NotFound:
            pass
        with _boundary(prefix):
            await self._threads.run(obstore.delete, self._store, doomed)
        return len(doomed)

    async def _in_threads[T](self, pieces: Iterable[T]) -> AsyncIterator[T]:
        """Reads a blocking iterator without blocking the event loop."""
        source = iter(pieces)
        while (piece := await self._threads.run(next, source, None)) is not None:
            yield piece

    @contextmanager
    def _writing(self, key: str) -> Iterator[None]:
        """A write looks up no file, so ``NotFound`` means that the bucket or folder is missing."""
        try:
            with _boundary(key):
                yield
        except NotFound as fault:
            problem = f"The place for files, {self._place}, does not exist."
            raise StoreUnavailable(problem, fix="Make the bucket, or set SEATRIAL_BLOBS_URL to one.") from fault


@contextmanager
def _boundary(key: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as fault:
        raise NotFound(f"There is no file {key}.") from fault
    except (BaseError, OSError) as fault:
        if f"(os error {errno.ENOTDIR})" in str(fault):  # a part of the key is itself a key
            raise NotFound(f"There is no file {key}.") from fault
        if f"(os error {errno.ENOSPC})" in str(fault) or getattr(fault, "errno", None) == errno.ENOSPC:
            raise StorageFull(f"There is no space left to store {key}.") from fault
        raise StoreUnavailable(f"The blob store failed at {key}: {_first_line(fault)}") from fault


def _first_line(fault: Exception) -> str:
    return str(fault).splitlines()[0] if str(fault) else type(fault).__name__
