"""Checks an archive's SHA-256 if it is written down.

Sources: ``<archive>.sha256`` beside it, ``SHA256SUMS`` in its folder (both as written by ``sha256sum``), and
``manifest.json`` in its folder (names to digests, or a list of entries with a name and a ``sha256``).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatrial.errors import InvalidArchive

_LISTS = ("SHA256SUMS", "sha256sums.txt")
_MANIFEST = "manifest.json"
_LINE = re.compile(r"^([0-9a-fA-F]{64})(?:\s+\*?(\S.*))?$")
_NAMES = ("name", "file", "filename", "path", "archive")


def checked_digest(archive: Path) -> str:
    """The archive's SHA-256; raises ``InvalidArchive`` if a different one is written down."""
    with archive.open("rb") as source:
        actual = hashlib.file_digest(source, "sha256").hexdigest()
    for place, expected in _expectations(archive):
        if expected != actual:
            raise InvalidArchive(
                archive.name,
                f"its SHA-256 is {actual}, but {place} says {expected}",
                fix="Fetch the archive again, or correct the digest.",
            )
    return actual


def _expectations(archive: Path) -> Iterator[tuple[str, str]]:
    beside = archive.with_name(f"{archive.name}.sha256")
    if beside.is_file():
        yield from ((beside.name, digest) for digest, name in _lines(beside) if name in (None, archive.name))
    for listing in (archive.with_name(name) for name in _LISTS):
        if listing.is_file():
            yield from ((listing.name, digest) for digest, name in _lines(listing) if name == archive.name)
    manifest = archive.with_name(_MANIFEST)
    if manifest.is_file():
        yield from ((manifest.name, digest) for name, digest in _entries(manifest) if name == archive.name)


def _lines(file: Path) -> Iterator[tuple[str, str | None]]:
    for line in file.read_text().splitlines():
        if found := _LINE.match(line.strip()):
            yield found[1].lower(), Path(found[2]).name if found[2] else None


def _entries(file: Path) -> Iterator[tuple[str, str]]:
    try:
        content = json.loads(file.read_text())
    except ValueError as error:
        raise InvalidArchive(file.name, f"it is not JSON: {error}") from error
    yield from _named(content)


def _named(content: Any) -> Iterator[tuple[str, str]]:
    """Digests by file name, in any of the usual formats."""
    if isinstance(content, list):
        for entry in content:
            yield from _named(entry)
    elif isinstance(content, dict):
        digest = content.get("sha256")
        if isinstance(digest, str):
            yield from ((Path(str(content[key])).name, _bare(digest)) for key in _NAMES if key in content)
        for name, value in content.items():
            if isinstance(value, str) and _LINE.match(_bare(value)):
                yield Path(name).name, _bare(value)
            elif isinstance(value, dict) and isinstance(value.get("sha256"), str):
                yield Path(name).name, _bare(value["sha256"])
            elif isinstance(value, list | dict):
                yield from _named(value)


def _bare(digest: str) -> str:
    return digest.removeprefix("sha256:").lower()
