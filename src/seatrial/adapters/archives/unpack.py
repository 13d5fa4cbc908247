"""Unpacking an uploaded or given archive: the kind is told by its first bytes, never by its name."""

from __future__ import annotations

from pathlib import Path

from seatrial.adapters.archives.rules import ArchiveLimits, Rule
from seatrial.adapters.archives.staging import staged
from seatrial.adapters.archives.tar_reader import unpack_tar
from seatrial.adapters.archives.zip_reader import unpack_zip
from seatrial.errors import InvalidArchive

_TAR_MAGIC_AT = 257


def unpack(archive: Path, into: Path, limits: ArchiveLimits | None = None) -> Path:
    """The content of the archive as the folder ``into``, whole or not at all.

    Every member is held against every rule while it is unpacked, and sizes are counted rather than believed. A broken
    rule is an ``InvalidArchive`` that names the member and the rule; nothing is left behind then, and nothing is ever
    written outside ``into``. Links that stay inside are kept; hard links become files of their own; of the modes only
    the executable bit stays. Blocks for as long as it takes: call it in a thread.
    """
    limits = limits or ArchiveLimits()
    kind = _kind(archive)
    if kind is None:
        raise InvalidArchive(archive.name, Rule.UNKNOWN_FORMAT, fix="Upload a .zip, .tar or .tar.gz file.")
    with staged(into) as staging:
        if kind == "zip":
            unpack_zip(archive, staging, limits)
        else:
            unpack_tar(archive, staging, limits, gzipped=kind == "gzip")
    return into


def _kind(archive: Path) -> str | None:
    with archive.open("rb") as source:
        head = source.read(_TAR_MAGIC_AT + 5)
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return "zip"
    if head[:2] == b"\x1f\x8b":
        return "gzip"
    return "tar" if head[_TAR_MAGIC_AT:] == b"ustar" else None
