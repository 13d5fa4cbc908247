"""The rules for archives, and the ledger that checks every member against them.

Used by the readers of this package. A broken rule raises ``InvalidArchive`` with the member and the rule; the value of
a rule is its message. Nothing here accesses the file system.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from pathlib import PurePosixPath

from seatrial.domain.frozen import Frozen
from seatrial.errors import InvalidArchive

_DRIVE = re.compile(r"^[A-Za-z]:")
_DEVICE_NAME = re.compile(r"^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])$", re.IGNORECASE)
_UNSAFE_CATEGORIES = {"Cc", "Cf", "Zl", "Zp"}
"""Control and formatting characters: they are invisible and change how a name is displayed."""


class Rule(StrEnum):
    """Why a member or a whole archive is refused."""

    UNKNOWN_FORMAT = "it is neither a ZIP nor a tar nor a gzipped tar file"
    EMPTY_NAME = "it has no name"
    ABSOLUTE_PATH = "its path is absolute"
    PARENT_FOLDER = "its path contains '..'"
    BACKSLASH = "its path contains a backslash"
    DRIVE_LETTER = "its path starts with a drive letter"
    CONTROL_CHARACTER = "its name contains a NUL, control or invisible character"
    NOT_UTF8 = "its name is not valid UTF-8"
    RESERVED_NAME = "its name is reserved on some systems, or ends with a dot or space"
    NAME_TOO_LONG = "its name is longer than 255 bytes, or its path longer than 1024"
    TOO_DEEP = "it is more than 32 folders deep"
    DUPLICATE = "its path occurs twice"
    CASE_COLLISION = "its path differs from another only in upper and lower case"
    UNICODE_COLLISION = "its path differs from another only in Unicode normalisation"
    FILE_AND_FOLDER = "its path is a file and a folder at the same time"
    THROUGH_LINK = "it would be written through a link"
    ABSOLUTE_LINK = "it is a link to an absolute path"
    ESCAPING_LINK = "it is a link out of the archive"
    LINK_LOOP = "it is a link that leads back to itself"
    HARD_LINK_TARGET = "it is a hard link to something that is not an earlier file of the archive"
    SPECIAL_FILE = "it is a device, FIFO or socket"
    SPARSE_FILE = "it is a sparse file"
    ENCRYPTED = "it is encrypted"
    UNSUPPORTED_METHOD = "it uses a compression other than 'stored' and 'deflated'"
    OVERLAP = "its data overlaps another member or the directory"
    LYING_SIZE = "its size is not the one that is declared"
    WRONG_CHECKSUM = "its checksum does not match"
    HEADERS_DIFFER = "its two headers contradict each other"
    BROKEN_HEADER = "its header is broken"
    WRONG_COUNT = "the number of members is not the one that is declared"
    SEVERAL_DISKS = "it is one part of a split archive"
    LEADING_DATA = "there is data before the first member"
    TRAILING_DATA = "there is data after the end of the archive"
    TRUNCATED = "it ends too early"
    CORRUPT = "its compressed data is broken"
    TOO_MANY_MEMBERS = "the archive has too many members"
    TOO_LARGE = "the archive is too large when unpacked"
    COMPRESSION_BOMB = "it is compressed far more than any real content would be"


class ArchiveLimits(Frozen):
    """Limits of one archive."""

    max_bytes: int = 512 * 1024 * 1024
    """Total size of the unpacked files."""
    max_members: int = 10_000
    max_ratio: float = 250.0
    """Unpacked size divided by packed size. Checked after ``ratio_from`` bytes."""
    ratio_from: int = 32 * 1024 * 1024
    portable_names: bool = True
    """Whether names must be valid on every system. Archives of the library only have to be valid on this one."""


class Kind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"


class Ledger:
    """The paths and the number of bytes of one archive so far. No rule depends on the order of members."""

    def __init__(self, limits: ArchiveLimits) -> None:
        self.limits = limits
        self._bytes = 0
        self._members = 0
        self._kinds: dict[PurePosixPath, Kind] = {}
        self._declared: set[PurePosixPath] = set()
        self._folded: dict[str, PurePosixPath] = {}

    def admit(self, name: str, kind: Kind) -> PurePosixPath:
        """Returns the member's relative path, or raises the rule that it breaks."""
        self._members += 1
        if self._members > self.limits.max_members:
            raise InvalidArchive(printable(name), Rule.TOO_MANY_MEMBERS)
        path = checked_path(name, self.limits.portable_names)
        if path == PurePosixPath("."):
            if kind is not Kind.FOLDER:
                raise InvalidArchive(printable(name), Rule.EMPTY_NAME)
            return path
        if path in self._declared:
            raise InvalidArchive(name, Rule.DUPLICATE)
        for parent in reversed(path.parents[:-1]):
            self._record(name, parent, Kind.FOLDER)
        self._record(name, path, kind)
        self._declared.add(path)
        return path

    def is_file(self, path: PurePosixPath) -> bool:
        return path in self._declared and self._kinds[path] is Kind.FILE

    def count(self, name: str, produced: int, member_bytes: int, packed_bytes: int) -> None:
        """Adds unpacked bytes. So far the member has ``member_bytes``, unpacked from ``packed_bytes``."""
        self._bytes += produced
        if self._bytes > self.limits.max_bytes:
            limit = self.limits.max_bytes // (1024 * 1024)
            raise InvalidArchive(name, Rule.TOO_LARGE, fix=f"At most {limit} MB are unpacked.")
        if member_bytes > self.limits.ratio_from and member_bytes > packed_bytes * self.limits.max_ratio:
            raise InvalidArchive(name, Rule.COMPRESSION_BOMB)

    def _record(self, name: str, path: PurePosixPath, kind: Kind) -> None:
        known = self._kinds.get(path)
        if known is not None and known is not kind:
            raise InvalidArchive(name, Rule.THROUGH_LINK if Kind.LINK in (known, kind) else Rule.FILE_AND_FOLDER)
        self._kinds[path] = kind
        if not self.limits.portable_names:
            return
        normal = unicodedata.normalize("NFC", str(path))
        twin = self._folded.setdefault(normal.casefold(), path)
        if twin != path:
            same_case = unicodedata.normalize("NFC", str(twin)) == normal
            raise InvalidArchive(name, Rule.UNICODE_COLLISION if same_case else Rule.CASE_COLLISION)


def checked_path(name: str, portable: bool = True) -> PurePosixPath:
    """Returns a relative path that stays inside the folder, or raises the rule that the name breaks."""
    rule = _unsafe(name) or (_unportable(name) if portable else None)
    if rule is not None:
        raise InvalidArchive(printable(name), rule)
    return PurePosixPath(name)


def _unsafe(name: str) -> Rule | None:
    if not name:
        return Rule.EMPTY_NAME
    if any("\ud800" <= character <= "\udfff" for character in name):
        return Rule.NOT_UTF8
    if "\x00" in name:
        return Rule.CONTROL_CHARACTER
    if name.startswith("/"):
        return Rule.ABSOLUTE_PATH
    return Rule.PARENT_FOLDER if ".." in name.split("/") else None


def _unportable(name: str) -> Rule | None:
    if any(unicodedata.category(character) in _UNSAFE_CATEGORIES for character in name):
        return Rule.CONTROL_CHARACTER
    if _DRIVE.match(name):
        return Rule.DRIVE_LETTER
    if "\\" in name:
        return Rule.BACKSLASH
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if len(name.encode()) > 1024 or any(len(part.encode()) > 255 for part in parts):
        return Rule.NAME_TOO_LONG
    if len(parts) > 32:
        return Rule.TOO_DEEP
    if any(part.endswith((".", " ")) or _DEVICE_NAME.match(part.partition(".")[0]) for part in parts):
        return Rule.RESERVED_NAME
    return None


def check_link(name: str, path: PurePosixPath, target: str) -> None:
    """Checks the text of a symbolic link. ``Staging.finish`` checks where it leads, after all links exist."""
    if not target or "\x00" in target:
        raise InvalidArchive(name, Rule.CONTROL_CHARACTER)
    if "\\" in target:
        raise InvalidArchive(name, Rule.BACKSLASH)
    if target.startswith("/") or _DRIVE.match(target):
        raise InvalidArchive(name, Rule.ABSOLUTE_LINK)
    depth = len(path.parts) - 1
    for part in PurePosixPath(target).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            raise InvalidArchive(name, Rule.ESCAPING_LINK)


def printable(name: str) -> str:
    """The name, shortened and without characters that could affect a terminal, a log or an encoder."""
    short = name if len(name) <= 200 else f"{name[:200]}…"
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)
    return safe or "(no name)"
