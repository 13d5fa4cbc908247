"""Builds archives byte by byte, so that every field can lie. Honest unless told otherwise."""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

LINK = (stat.S_IFLNK | 0o777) << 16
PROGRAM = (stat.S_IFREG | 0o755) << 16


@dataclass(frozen=True)
class Member:
    """One ZIP member. ``None`` stands for the truth."""

    name: str | bytes
    data: bytes = b"content\n"
    method: int = 8
    flags: int = 0x800
    attributes: int = (stat.S_IFREG | 0o644) << 16
    crc: int | None = None
    size: int | None = None
    packed: bytes | None = None
    local_name: bytes | None = None
    local_size: int | None = None
    extra: bytes = b""
    at: int | None = None
    """Offset of the local header that the directory names; with one, no data of its own is written."""

    @property
    def raw_name(self) -> bytes:
        return self.name if isinstance(self.name, bytes) else self.name.encode()

    @property
    def compressed(self) -> bytes:
        if self.packed is not None:
            return self.packed
        return deflate(self.data) if self.method == 8 else self.data


def deflate(data: bytes) -> bytes:
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return squeeze.compress(data) + squeeze.flush()


def zip_of(
    members: Iterable[Member], *, count: int | None = None, disk: int = 0, before: bytes = b"", after: bytes = b""
) -> bytes:
    body = bytearray(before)
    directory = bytearray()
    written = 0
    for member in members:
        written += 1
        packed = member.compressed
        crc = zlib.crc32(member.data) if member.crc is None else member.crc
        size = len(member.data) if member.size is None else member.size
        at = len(body) if member.at is None else member.at
        if member.at is None:
            local = member.raw_name if member.local_name is None else member.local_name
            claimed = size if member.local_size is None else member.local_size
            body += struct.pack(
                "<4s5H3L2H", b"PK\x03\x04", 20, member.flags, member.method, 0, 0x21, crc, len(packed),
                claimed, len(local), 0,
            )  # fmt: skip
            body += local + packed
        directory += struct.pack(
            "<4s6H3L5H2L", b"PK\x01\x02", 3 << 8 | 20, 20, member.flags, member.method, 0, 0x21, crc, len(packed),
            size, len(member.raw_name), len(member.extra), 0, 0, 0, member.attributes, at,
        )  # fmt: skip
        directory += member.raw_name + member.extra
    total = written if count is None else count
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", disk, disk, total, total, len(directory), len(body), 0)
    return bytes(body + directory + end + after)


def file(name: str, data: bytes = b"content\n") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    return info, data


def special(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info, b""


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return special(name, tarfile.SYMTYPE, target)


def hard_link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return special(name, tarfile.LNKTYPE, target)


def tar_of(*members: tuple[tarfile.TarInfo, bytes], zipped: bool = True, end: bool = True, after: bytes = b"") -> bytes:
    sink = io.BytesIO()
    with tarfile.TarFile(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT, errors="surrogateescape") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
        length = sink.tell()
    plain = (sink.getvalue() if end else sink.getvalue()[:length]) + after
    return gzip.compress(plain, mtime=0) if zipped else plain


def header(name: str, size_field: bytes, kind: bytes = b"0") -> bytes:
    """A bare tar header with any size field, and the right checksum."""
    block = bytearray(tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = size_field
    block[156:157] = kind
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def quoted_bomb(files: int, kernel_mb: int) -> bytes:
    """A ZIP of a few kilobytes that holds gigabytes: every member contains all that follow it.

    Each member's data is a stored block that quotes the header of the next one, and then the next one's data itself,
    down to one kernel of zeros. Every header is honest; only the overlap gives it away."""
    kernel = deflate(b"\0" * (kernel_mb << 20))
    headers: list[bytes] = []
    packed, size, crc = len(kernel), kernel_mb << 20, 0
    sizes: list[tuple[int, int]] = []
    for number in reversed(range(files)):
        name = f"{number:04}".encode()
        headers.append(
            struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 8, 0, 0x21, crc, packed, size, len(name), 0) + name
        )
        sizes.append((packed, size))
        packed, size = packed + 5 + len(headers[-1]), size + len(headers[-1])
    body, directory = bytearray(), bytearray()
    for number, (local, (packed, size)) in enumerate(zip(reversed(headers), reversed(sizes), strict=True)):
        if number:
            body += struct.pack("<BHH", 0, len(local), 0xFFFF ^ len(local))
        directory += struct.pack(
            "<4s6H3L5H2L", b"PK\x01\x02", 3 << 8 | 20, 20, 0, 8, 0, 0x21, crc, packed, size, 4, 0, 0, 0, 0,
            (stat.S_IFREG | 0o644) << 16, len(body),
        )  # fmt: skip
        directory += f"{number:04}".encode()
        body += local
    body += kernel
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, files, files, len(directory), len(body), 0)
    return bytes(body + directory + end)
