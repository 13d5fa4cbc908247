"""Reads ZIP files strictly: the directory at the end and the header of each member must agree.

The standard library trusts declared sizes and keeps any number of members in memory. An uploaded archive is untrusted,
so this reader limits the number of members and counts the bytes that each member produces.
"""

from __future__ import annotations

import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from seatrial.adapters.archives.rules import ArchiveLimits, Kind, Ledger, Rule, check_link, printable
from seatrial.adapters.archives.staging import Staging
from seatrial.errors import InvalidArchive

_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_DIRECTORY = struct.Struct("<4xH2x2H4x3L4H2x2L")
_LOCAL = struct.Struct("<6x2H8x2L2H")
_CHUNK = 256 * 1024
_STORED, _DEFLATED = 0, 8
_ENCRYPTED_FLAGS = 0x1 | 0x40 | 0x2000
_UTF8_FLAG = 0x800
_UNIX = 3
_LINK_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class _End:
    count: int
    directory_offset: int
    directory_size: int
    starts_at: int
    """Offset of the end record, which must follow the directory immediately."""


@dataclass(frozen=True, slots=True)
class ZipMember:
    name: str
    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    header_offset: int
    mode: int

    @property
    def kind(self) -> Kind:
        if self.name.endswith("/") or stat.S_ISDIR(self.mode):
            return Kind.FOLDER
        return Kind.LINK if stat.S_ISLNK(self.mode) else Kind.FILE


def unpack_zip(archive: Path, staging: Staging, limits: ArchiveLimits) -> None:
    """Checks all headers first, then writes member by member."""
    with archive.open("rb") as source:
        end = _find_end(source, archive)
        members = list(_directory(source, end, limits, archive.name))
        data_offsets = _check_layout(source, members, end)
        ledger = Ledger(limits)
        for member, offset in zip(members, data_offsets, strict=True):
            _unpack_member(source, member, offset, ledger, staging)


def _find_end(source: BinaryIO, archive: Path) -> _End:
    size = archive.stat().st_size
    tail_start = max(0, size - _END.size - 0xFFFF)
    source.seek(tail_start)
    tail = source.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise InvalidArchive(archive.name, Rule.TRUNCATED)
    _, disk, first_disk, here, count, length, offset, comment = _END.unpack_from(tail, at)
    starts_at = tail_start + at
    if starts_at + _END.size + comment != size:
        raise InvalidArchive(archive.name, Rule.TRAILING_DATA)
    if 0xFFFF in (here, count) or 0xFFFFFFFF in (length, offset):
        return _find_end64(source, archive, starts_at)
    if disk or first_disk or here != count:
        raise InvalidArchive(archive.name, Rule.SEVERAL_DISKS)
    return _End(count, offset, length, starts_at)


def _find_end64(source: BinaryIO, archive: Path, end_at: int) -> _End:
    locator_at = end_at - _END64_LOCATOR.size
    source.seek(max(0, locator_at))
    locator = source.read(_END64_LOCATOR.size)
    if locator_at < 0 or locator[:4] != b"PK\x06\x07":
        raise InvalidArchive(archive.name, Rule.BROKEN_HEADER)
    _, _, record_at, disks = _END64_LOCATOR.unpack(locator)
    source.seek(min(record_at, end_at))
    record = source.read(_END64.size)
    if len(record) < _END64.size or record[:4] != b"PK\x06\x06" or record_at + _END64.size > locator_at:
        raise InvalidArchive(archive.name, Rule.BROKEN_HEADER)
    _, _, _, _, disk, first_disk, here, count, length, offset = _END64.unpack(record)
    if disks > 1 or disk or first_disk or here != count:
        raise InvalidArchive(archive.name, Rule.SEVERAL_DISKS)
    return _End(count, offset, length, record_at)


def _directory(source: BinaryIO, end: _End, limits: ArchiveLimits, archive: str) -> Iterator[ZipMember]:
    """The members in the order of the directory. Stops at the limit, whatever the declared count is."""
    if end.directory_offset + end.directory_size > end.starts_at:
        raise InvalidArchive(archive, Rule.TRUNCATED)
    if end.directory_offset + end.directory_size < end.starts_at:
        raise InvalidArchive(archive, Rule.LEADING_DATA)
    source.seek(end.directory_offset)
    seen = 0
    while source.tell() < end.starts_at:
        fixed = source.read(_DIRECTORY.size)
        if len(fixed) < _DIRECTORY.size or fixed[:4] != b"PK\x01\x02":
            raise InvalidArchive(archive, Rule.BROKEN_HEADER)
        seen += 1
        if seen > limits.max_members:
            raise InvalidArchive(archive, Rule.TOO_MANY_MEMBERS, fix=f"At most {limits.max_members} are unpacked.")
        yield _member(source, fixed, archive)
    if source.tell() != end.starts_at or seen != end.count:
        raise InvalidArchive(archive, Rule.WRONG_COUNT)


def _member(source: BinaryIO, fixed: bytes, archive: str) -> ZipMember:
    made_by, flags, method, crc, packed, size, *lengths, disk, attributes, at = _DIRECTORY.unpack(fixed)
    name_length, extra_length, comment_length = lengths
    raw_name = source.read(name_length)
    extra = source.read(extra_length)
    source.seek(comment_length, 1)
    name = _decode(raw_name, flags)
    size, packed, at = _widen(extra, (size, packed, at), name)
    if disk not in (0, 0xFFFF):
        raise InvalidArchive(archive, Rule.SEVERAL_DISKS)
    mode = attributes >> 16 if made_by >> 8 == _UNIX else 0
    return ZipMember(name, raw_name, flags, method, crc, packed, size, at, mode)


def _decode(raw: bytes, flags: int) -> str:
    """Without the UTF-8 flag, names are CP437 by the specification, but most tools write UTF-8."""
    if flags & _UTF8_FLAG:
        return raw.decode("utf-8", "surrogateescape")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp437")


def _widen(extra: bytes, values: tuple[int, int, int], name: str) -> tuple[int, int, int]:
    """Replaces values that are all ones by those of the ZIP64 field, which must exist in that case."""
    if 0xFFFFFFFF not in values:
        return values
    at = 0
    while at + 4 <= len(extra):
        tag, length = struct.unpack_from("<2H", extra, at)
        if tag == 1:
            wide = list(struct.unpack_from(f"<{min(length, len(extra) - at - 4) // 8}Q", extra, at + 4))
            try:
                size, packed, offset = (wide.pop(0) if value == 0xFFFFFFFF else value for value in values)
            except (IndexError, RuntimeError) as missing:
                raise InvalidArchive(printable(name), Rule.BROKEN_HEADER) from missing
            return size, packed, offset
        at += 4 + length
    raise InvalidArchive(printable(name), Rule.BROKEN_HEADER)


def _check_layout(source: BinaryIO, members: list[ZipMember], end: _End) -> list[int]:
    """The offset of each member's data. No byte may belong to two members, and the headers must agree."""
    offsets: list[int] = []
    spans: list[tuple[int, int, str]] = []
    for member in members:
        if member.header_offset + _LOCAL.size > end.directory_offset:
            raise InvalidArchive(printable(member.name), Rule.OVERLAP)
        source.seek(member.header_offset)
        fixed = source.read(_LOCAL.size)
        if fixed[:4] != b"PK\x03\x04":
            raise InvalidArchive(printable(member.name), Rule.BROKEN_HEADER)
        flags, method, packed, size, name_length, extra_length = _LOCAL.unpack(fixed)
        local_name = source.read(name_length)
        if local_name != member.raw_name or method != member.method or (flags ^ member.flags) & _ENCRYPTED_FLAGS:
            raise InvalidArchive(printable(member.name), Rule.HEADERS_DIFFER)
        known = not flags & 0x8 and 0xFFFFFFFF not in (packed, size)
        if known and (packed, size) != (member.packed, member.size):
            raise InvalidArchive(printable(member.name), Rule.LYING_SIZE)
        data_at = member.header_offset + _LOCAL.size + name_length + extra_length
        offsets.append(data_at)
        spans.append((member.header_offset, data_at + member.packed, member.name))
    spans.sort()
    if spans and spans[0][0] != 0:
        raise InvalidArchive(printable(spans[0][2]), Rule.LEADING_DATA)
    for (_, stop, _), (start, _, name) in pairwise(spans):
        if start < stop:
            raise InvalidArchive(printable(name), Rule.OVERLAP)
    if spans and spans[-1][1] > end.directory_offset:
        raise InvalidArchive(printable(spans[-1][2]), Rule.OVERLAP)
    return offsets


def _unpack_member(source: BinaryIO, member: ZipMember, offset: int, ledger: Ledger, staging: Staging) -> None:
    name = printable(member.name)
    if member.flags & _ENCRYPTED_FLAGS:
        raise InvalidArchive(name, Rule.ENCRYPTED)
    if member.method not in (_STORED, _DEFLATED):
        raise InvalidArchive(name, Rule.UNSUPPORTED_METHOD)
    file_type = stat.S_IFMT(member.mode)
    if file_type not in (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
        raise InvalidArchive(name, Rule.SPECIAL_FILE)
    path = ledger.admit(member.name, member.kind)
    if member.kind is Kind.FOLDER:
        if member.size or member.packed > 2:
            raise InvalidArchive(name, Rule.FILE_AND_FOLDER)
        staging.folder(path)
    elif member.kind is Kind.LINK:
        if member.size > _LINK_LIMIT:
            raise InvalidArchive(name, Rule.NAME_TOO_LONG)
        target = b"".join(_content(source, member, offset, ledger)).decode("utf-8", "surrogateescape")
        check_link(name, path, target)
        staging.link(path, target)
    else:
        staging.file(path, _content(source, member, offset, ledger), bool(member.mode & 0o100))


def _content(source: BinaryIO, member: ZipMember, offset: int, ledger: Ledger) -> Iterator[bytes]:
    """The member's bytes. Counts them, and compares with the declared size and checksum."""
    name = printable(member.name)
    source.seek(offset)
    produced = consumed = checksum = 0
    for piece, packed in _pieces(source, member, name):
        produced += len(piece)
        consumed += packed
        if produced > member.size:
            raise InvalidArchive(name, Rule.LYING_SIZE)
        ledger.count(name, len(piece), produced, consumed)
        checksum = zlib.crc32(piece, checksum)
        yield piece
    if produced != member.size:
        raise InvalidArchive(name, Rule.LYING_SIZE)
    if checksum != member.crc:
        raise InvalidArchive(name, Rule.WRONG_CHECKSUM)


def _pieces(source: BinaryIO, member: ZipMember, name: str) -> Iterator[tuple[bytes, int]]:
    """Unpacked pieces of limited size, each with the number of packed bytes it used."""
    left = member.packed
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    while left:
        block = source.read(min(_CHUNK, left))
        if not block:
            raise InvalidArchive(name, Rule.TRUNCATED)
        left -= len(block)
        if member.method == _STORED:
            yield block, len(block)
            continue
        packed = len(block)
        while block:
            try:
                piece = inflate.decompress(block, _CHUNK)
            except zlib.error as broken:
                raise InvalidArchive(name, Rule.CORRUPT) from broken
            block = inflate.unconsumed_tail
            yield piece, packed - len(block)
            packed = len(block)
        if inflate.eof and (left or inflate.unused_data):
            raise InvalidArchive(name, Rule.LYING_SIZE)
    if member.method == _DEFLATED and not inflate.eof:
        raise InvalidArchive(name, Rule.CORRUPT)
