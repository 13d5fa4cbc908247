"""Blobs in S3, Google Cloud Storage or Azure, through obstore. Opened by ``wiring``.

This uses obstore's blocking calls in threads. Its asynchronous calls use threads of obstore, which abort the
interpreter if it exits while they report: a command would print its result and then fail.

An object is visible when its upload has ended, never before: one request for small files, a multipart upload for
larger ones. Uploads that a killed worker left are no objects; the bucket's lifecycle rule removes them
(``deploy/s3-lifecycle.json``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import from_url

from seatrial.adapters.blobs_shared import key_of, path_of, take_each
from seatrial.adapters.object_errors import PastTheEnd, boundary, reason
from seatrial.errors import InvalidInput, NotFound, StoreUnavailable
from seatrial.ports.blobs import BlobInfo
from seatrial.system.fair_threads import FairThreads

if TYPE_CHECKING:
    from obstore import GetResult
    from obstore.store import ObjectStore

_SCHEMES = ("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss")
_THREADS = 16
_TRANSFERS = 8
"""Threads for large files, so that many of them do not delay small ones."""
_RETRIES: Any = {"max_retries": 2, "retry_timeout": timedelta(seconds=10)}
"""Short, because a retry blocks a thread. Callers that can wait longer retry themselves."""
_SMALL = 64 << 10
_PART = 5 << 20
"""Larger files are sent in parts of this size, which is the smallest that object stores accept."""
_MOST_PARTS = 9_000
_PARTS_AT_ONCE = 2
_PIECE = 4 << 20
"""Reads are requests of at most this size: a slow network then needs no long timeout, and memory stays small."""


@dataclass(frozen=True, slots=True)
class S3Access:
    """How to reach an S3 server. What is empty is taken from where AWS's tools look for it: variables, the role of a
    task, pod or instance."""

    endpoint: str = ""
    region: str = ""
    path_style: bool = True
    access_key_id: str = ""
    secret_access_key: str = ""
    session_token: str = ""
    encryption: str = ""
    kms_key_id: str = ""

    def __repr__(self) -> str:
        return f"S3Access(endpoint={self.endpoint!r}, region={self.region!r})"

    @property
    def options(self) -> dict[str, Any]:
        given = {
            "endpoint": self.endpoint,
            "region": self.region,
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
            "session_token": self.session_token,
            "server_side_encryption": self.encryption,
            "sse_kms_key_id": self.kms_key_id,
        }
        virtual = {} if self.path_style else {"virtual_hosted_style_request": True}
        return {name: value for name, value in given.items() if value} | virtual


@dataclass(frozen=True, slots=True)
class Connection:
    """Time limits and trust of the HTTP connections."""

    timeout_sec: float = 60.0
    """For one request with its whole body, which is at most a few megabytes."""
    ca_file: Path | None = None

    def options(self, endpoint: str) -> dict[str, Any]:
        limits = {"timeout": timedelta(seconds=self.timeout_sec), "connect_timeout": timedelta(seconds=5)}
        trust = {"root_certificate": self.ca_file.read_text()} if self.ca_file is not None else {}
        plain = {"allow_http": True} if endpoint.startswith("http://") else {}  # the operator wrote so
        return {**limits, **trust, **plain}


class ObjectBlobs:
    """Safe for concurrent use. Has no connection that must be closed."""

    def __init__(self, store: ObjectStore, place: str) -> None:
        """``place`` is what people know it by."""
        self._store = store
        self._place = place
        self._threads = FairThreads("blobs", _THREADS)
        self._transfers = FairThreads("blobs-large", _TRANSFERS)

    @classmethod
    def at(cls, url: str, access: S3Access | None = None, connection: Connection | None = None) -> Self:
        """``s3://bucket/prefix``, ``gs://…``, ``az://…``; credentials from ``access`` or where that cloud's tools look
        for them."""
        access, connection = access or S3Access(), connection or Connection()
        _refuse_odd(url, access.endpoint)
        options = access.options if url.startswith("s3") else {}
        try:
            client: Any = connection.options(access.endpoint)
            return cls(from_url(url, client_options=client, retry_config=_RETRIES, **options), url)
        except (BaseError, ValueError, OSError) as fault:
            # Not chained: obstore's text holds the whole URL and its options.
            error = InvalidInput(f"Files cannot be kept at {url}: {reason(fault)}.", field="blobs_url")
        raise error from None

    async def put_file(self, key: str, source: Path) -> int:
        size = source.stat().st_size
        if size <= _SMALL:  # most files of a trial; reading them at once takes a third less time
            data = source.read_bytes()
            await self.put_bytes(key, data)
            return len(data)
        part = max(_PART, -(-size // _MOST_PARTS))
        with self._writing(key):
            await self._transfers.run(
                obstore.put, self._store, path_of(key), source, chunk_size=part, max_concurrency=_PARTS_AT_ONCE
            )
        return (await self.info(key)).size

    async def take_file(self, key: str, source: Path) -> int:
        return await self.put_file(key, source)

    async def take_folder(self, prefix: str, root: Path, names: Sequence[str]) -> list[int]:
        return await take_each(self.take_file, prefix, root, names)

    async def put_bytes(self, key: str, data: bytes) -> None:
        with self._writing(key):
            await self._threads.run(obstore.put, self._store, path_of(key), data)

    async def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        return b"".join([piece async for piece in self.stream(key, start, length)])

    async def stream(self, key: str, start: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        end = None if length is None else start + length
        version: str | None = None
        while end is None or start < end:
            piece, version, size = await self._piece(key, start, end, version)
            if piece:
                yield piece
            start += len(piece)
            end = size if end is None else min(end, size)

    async def info(self, key: str) -> BlobInfo:
        with boundary(key):
            found = await self._threads.run(obstore.head, self._store, path_of(key))
        return BlobInfo(key=key, size=found["size"], modified_at=found["last_modified"])

    async def list(self, prefix: str) -> AsyncIterator[BlobInfo]:
        with boundary(prefix):
            async for batch in self._in_threads(obstore.list(self._store, path_of(prefix) if prefix else None)):
                for found in batch:
                    yield BlobInfo(key=key_of(found["path"]), size=found["size"], modified_at=found["last_modified"])

    async def delete(self, prefix: str) -> int:
        if not prefix:
            raise InvalidInput("Give a prefix: deleting all files at once is not allowed.", field="prefix")
        doomed = [path_of(found.key) async for found in self.list(prefix)]
        try:
            await self.info(prefix)
            doomed.append(path_of(prefix))
        except NotFound:
            pass
        with boundary(prefix):
            await self._threads.run(obstore.delete, self._store, doomed)
        return len(doomed)

    async def _piece(self, key: str, start: int, end: int | None, version: str | None) -> tuple[bytes, str | None, int]:
        """One piece of the wanted range, the version that it is of, and the size of the whole.

        All pieces are of one version: an object that is replaced meanwhile gives an error, never a mixture."""
        last = start + _PIECE if end is None else min(end, start + _PIECE)
        options: Any = {"range": (start, last)} | ({"if_match": version} if version else {})

        def get() -> tuple[bytes, GetResult]:
            found = obstore.get(self._store, path_of(key), options=options)
            return bytes(found.bytes()), found

        try:
            with boundary(key):
                piece, found = await self._threads.run(get)
                return piece, found.meta["e_tag"], found.meta["size"]
        except PastTheEnd:
            size = (await self.info(key)).size
            if start < size:
                raise
            return b"", version, size

    async def _in_threads[T](self, pieces: Iterable[T]) -> AsyncIterator[T]:
        """Reads a blocking iterator without blocking the event loop."""
        source = iter(pieces)
        while (piece := await self._threads.run(next, source, None)) is not None:
            yield piece

    @contextmanager
    def _writing(self, key: str) -> Iterator[None]:
        """A write looks up no file, so ``NotFound`` means that the bucket or folder is missing."""
        try:
            with boundary(key, writing=True):
                yield
        except NotFound:
            error = StoreUnavailable(
                f"The place for files, {self._place}, does not exist.",
                fix="Make the bucket, or set SEATRIAL_BLOBS_URL to one.",
            )
        else:
            return
        raise error from None


def _refuse_odd(url: str, endpoint: str) -> None:
    """A URL with credentials in it is refused without repeating it: a URL gets into messages and process lists."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidInput("The place for files is not a URL.", field="blobs_url") from None
    if "@" in parts.netloc or parts.query or parts.fragment or "@" in endpoint:
        raise InvalidInput(
            "The URL of the place for files must hold neither credentials nor options.",
            field="blobs_url",
            fix="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use the role of the machine.",
        )
    if parts.scheme not in _SCHEMES or not parts.netloc:
        known = "s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
        raise InvalidInput(f"Files cannot be kept at {url}.", field="blobs_url", fix=f"Use {known}.")
    if ".." in parts.path.split("/"):
        raise InvalidInput("The prefix of the place for files must not contain '..'.", field="blobs_url")
