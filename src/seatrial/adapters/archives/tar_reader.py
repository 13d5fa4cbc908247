"""Reads tar files, plain or gzipped. The standard library parses the headers; this module checks everything else.

``tarfile`` reads a long-name header of any declared size into memory, and treats a broken header as the end of the
archive. So it reads through ``BoundedStream``, which limits the size of a read, counts every byte, and shows how the
archive ended.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from seatrial.adapters.archives.rules import ArchiveLimits, Kind, Ledger, Rule, check_link, checked_path, printable
from seatrial.adapters.archives.staging import Staging
from seatrial.errors import InvalidArchive

_BLOCK = 512
_CHUNK = 256 * 1024
_HEADER_LIMIT = 64 * 1024


class BoundedStream:
    """The unpacked stream, forward only. Headers and padding are counted like content."""

    def __init__(self, stream: BinaryIO, packed: BinaryIO, ledger: Ledger, archive: str) -> None:
        self._stream = stream
        self._packed = packed
        self._ledger = ledger
        self._position = 0
        self.last = b""
        """The last block that ``tarfile`` read. It shows how the archive ended."""
        self.member = archive
        """The member that is being read, for messages."""

    def read(self, size: int) -> bytes:
        """For ``tarfile``, which reads only headers: a large read means a wrong header."""
        if size > _HEADER_LIMIT:
            raise InvalidArchive(self.member, Rule.BROKEN_HEADER)
        self.last = self._take(size)
        return self.last

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> int:
        """Seeks forward by reading."""
        while self._position < position:
            if not self._take(min(_CHUNK, position - self._position)):
                break
        return self._position

    def content(self, size: int) -> Iterator[bytes]:
        left = size
        while left:
            piece = self._take(min(_CHUNK, left))
            if not piece:
                raise InvalidArchive(self.member, Rule.TRUNCATED)
            left -= len(piece)
            yield piece

    def rest(self) -> Iterator[bytes]:
        while piece := self._take(_CHUNK):
            yield piece

    def _take(self, size: int) -> bytes:
        pieces = []
        while size:
            try:
                piece = self._stream.read(size)
            except EOFError as early:
                raise InvalidArchive(self.member, Rule.TRUNCATED) from early
            except (gzip.BadGzipFile, zlib.error) as broken:
                raise InvalidArchive(self.member, _gzip_rule(broken)) from broken
            if not piece:
                break
            self._position += len(piece)
            self._ledger.count(self.member, len(piece), self._position, self._packed.tell())
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def unpack_tar(archive: Path, staging: Staging, limits: ArchiveLimits, gzipped: bool) -> None:
    """Checks and writes member by member, in one pass over the stream."""
    # Headers and padding are counted too: two blocks more for each member, and twenty at the end.
    room = limits.max_bytes + limits.max_members * 4 * _BLOCK
    ledger = Ledger(limits.model_copy(update={"max_bytes": room}))
    with archive.open("rb") as packed:
        unpacked = cast(BinaryIO, gzip.GzipFile(fileobj=packed)) if gzipped else packed
        stream = BoundedStream(unpacked, packed, ledger, archive.name)
        _Reader(stream, staging, ledger, limits, archive.name).unpack()


class _Reader:
    def __init__(
        self, stream: BoundedStream, staging: Staging, ledger: Ledger, limits: ArchiveLimits, archive: str
    ) -> None:
        self._stream = stream
        self._staging = staging
        self._ledger = ledger
        self._limits = limits
        self._archive = archive
        self._content_bytes = 0

    def unpack(self) -> None:
        try:
            tar = tarfile.TarFile(fileobj=cast(BinaryIO, self._stream), errorlevel=2)
            while (info := tar.next()) is not None:
                tar.members.clear()  # type: ignore[attr-defined]  # tarfile would keep every header
                self._member(info)
                self._stream.member = self._archive
        except (tarfile.TarError, UnicodeError, ValueError, OverflowError) as broken:
            raise InvalidArchive(self._stream.member, Rule.BROKEN_HEADER) from broken
        self._check_end()

    def _member(self, info: tarfile.TarInfo) -> None:
        name = printable(info.name)
        self._stream.member = name
        if info.issparse() or info.type == tarfile.GNUTYPE_SPARSE:
            raise InvalidArchive(name, Rule.SPARSE_FILE)
        if info.isreg():
            self._file(info, name)
        elif info.isdir():
            self._staging.folder(self._ledger.admit(info.name, Kind.FOLDER))
        elif info.issym():
            path = self._ledger.admit(info.name, Kind.LINK)
            check_link(name, path, info.linkname)
            self._staging.link(path, info.linkname)
        elif info.islnk():
            self._hard_link(info, name)
        else:
            raise InvalidArchive(name, Rule.SPECIAL_FILE)

    def _file(self, info: tarfile.TarInfo, name: str) -> None:
        if info.size < 0:
            raise InvalidArchive(name, Rule.BROKEN_HEADER)
        path = self._ledger.admit(info.name, Kind.FILE)
        self._content_bytes += info.size
        if self._content_bytes > self._limits.max_bytes:
            limit = self._limits.max_bytes // (1024 * 1024)
            raise InvalidArchive(name, Rule.TOO_LARGE, fix=f"At most {limit} MB are unpacked.")
        self._staging.file(path, self._stream.content(info.size), bool(info.mode & 0o100))

    def _hard_link(self, info: tarfile.TarInfo, name: str) -> None:
        source = checked_path(info.linkname)
        if not self._ledger.is_file(source):
            raise InvalidArchive(name, Rule.HARD_LINK_TARGET)
        path = self._ledger.admit(info.name, Kind.FILE)
        size = (self._staging.root / source).stat().st_size
        self._content_bytes += size
        self._ledger.count(name, size, 0, 0)
        self._staging.copy(source, path)

    def _check_end(self) -> None:
        """``tarfile`` also stops at a broken header and at the end of the file. Only zeros are a valid end."""
        if len(self._stream.last) < _BLOCK:
            raise InvalidArchive(self._archive, Rule.TRUNCATED)
        if any(self._stream.last):
            raise InvalidArchive(self._archive, Rule.BROKEN_HEADER)
        if any(piece.strip(b"\0") for piece in self._stream.rest()):
            raise InvalidArchive(self._archive, Rule.TRAILING_DATA)


def _gzip_rule(broken: Exception) -> Rule:
    text = str(broken)
    if "CRC" in text:
        return Rule.WRONG_CHECKSUM
    if "length" in text:
        return Rule.LYING_SIZE
    return Rule.TRAILING_DATA if "Not a gzipped file" in text else Rule.CORRUPT
