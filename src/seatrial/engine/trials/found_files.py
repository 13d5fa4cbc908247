"""Finds the files of a try within limits, and gives them the names under which they are saved.

The files come from a sandbox and are untrusted. Links and special files are left out, the depth of folders is limited,
and a name is escaped if it cannot be shown or stored as it is.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from seatrial.domain.result import FileLeftOut, FilesLeftOut
from seatrial.ports.blobs import PLAIN_KEY, has_room
from seatrial.system.fair_threads import yield_turn

_LONGEST_PATH = 3000
"""In bytes, below the directory of the try. The whole path must stay below the 4096 of the system."""
_LONGEST_SHOWN = 500
_MOST_EXAMPLES = 20
_LONGEST_REASON = 300
_SEARCHED = 20
"""The search stops after this many times the number of files that may be saved."""
_FIRST = ("", "verifier", "steps")
"""Files of these folders are saved first, so that an agent cannot crowd out the output of the verifier."""
_OURS = ("trajectory.json", "recording.cast")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._ +@,~-]")


@dataclass(frozen=True, slots=True)
class SaveLimits:
    """The most that is saved of one try."""

    files: int = 10_000
    bytes: int = 1 << 30
    depth: int = 64


@dataclass(frozen=True, slots=True)
class Found:
    """A regular file."""

    path: str
    """The path below the directory of the try."""
    size: int


class LeftOut:
    """Counts the files that are not saved, and keeps the names of the first ones."""

    def __init__(self, clean: Callable[[str], str] = str) -> None:
        """``clean`` removes secrets from a name."""
        self._clean = clean
        self._count = 0
        self._examples: list[FileLeftOut] = []

    def add(self, path: str, reason: str, count: int = 1) -> None:
        self._count += count
        if len(self._examples) < _MOST_EXAMPLES:
            self._examples.append(FileLeftOut(path=shown(self._clean(path)), reason=reason[:_LONGEST_REASON]))

    def summary(self) -> FilesLeftOut | None:
        return FilesLeftOut(count=self._count, examples=tuple(self._examples)) if self._count else None


def find_files(root: Path, limits: SaveLimits, left_out: LeftOut) -> list[Found]:
    """Regular files below ``root`` within the limits, the most important first. Blocking."""
    found = sorted(_look_through(root, limits, left_out), key=lambda file: rank(file.path))
    kept: list[Found] = []
    beyond: list[Found] = []
    room = limits.bytes
    for file in found:
        if len(kept) == limits.files:
            beyond.append(file)
        elif file.size > room:
            left_out.add(file.path, f"It has {_megabytes(file.size)}, and {_megabytes(limits.bytes)} is the limit.")
        else:
            room -= file.size
            kept.append(file)
    if beyond:
        left_out.add(beyond[0].path, f"At most {limits.files} files are stored.", len(beyond))
    return kept


def regular_files(root: Path) -> Iterator[str]:
    """Paths of regular files below ``root``, sorted. Follows no link. For files of tasks, whose names are plain."""
    for directory, subdirectories, names in os.walk(root, followlinks=False):
        subdirectories.sort()
        below = directory.removeprefix(str(root)).lstrip("/")
        for name in sorted(names):
            path = f"{below}/{name}" if below else name
            if path.isprintable() and "\\" not in path and stat.S_ISREG(os.lstat(f"{directory}/{name}").st_mode):
                yield path


def _look_through(root: Path, limits: SaveLimits, left_out: LeftOut) -> Iterator[Found]:
    """Breadth first and without recursion, so that a deep or large tree does no harm."""
    pending = [""]
    looked_at = 0
    for depth in range(1, limits.depth + 1):
        below: list[str] = []
        for folder in pending:
            for entry in _entries(root, folder, left_out):
                yield_turn()
                looked_at += 1
                if looked_at > _SEARCHED * limits.files:
                    left_out.add(folder, "There are too many files to list them all.")
                    return
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    below.append(path)
                elif file := _regular(entry, path, left_out):
                    yield file
        pending = [folder for folder in below if _can_be_entered(folder, depth, limits, left_out)]


def _entries(root: Path, folder: str, left_out: LeftOut) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(f"{root}/{folder}") as entries:
            yield from entries
    except OSError as error:
        left_out.add(folder, f"The folder cannot be read: {error.strerror}.")


def _regular(entry: os.DirEntry[str], path: str, left_out: LeftOut) -> Found | None:
    if len(os.fsencode(path)) > _LONGEST_PATH:
        left_out.add(path, f"Its path has more than {_LONGEST_PATH} bytes.")
        return None
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError as error:
        left_out.add(path, f"It cannot be read: {error.strerror}.")
        return None
    if not stat.S_ISREG(status.st_mode):
        left_out.add(path, "It is a link." if stat.S_ISLNK(status.st_mode) else "It is not a regular file.")
        return None
    return Found(path, status.st_size)


def _can_be_entered(folder: str, depth: int, limits: SaveLimits, left_out: LeftOut) -> bool:
    if depth == limits.depth:
        left_out.add(f"{folder}/", f"Folders are stored up to a depth of {limits.depth}.")
    elif len(os.fsencode(folder)) > _LONGEST_PATH:
        left_out.add(f"{folder}/", f"Its path has more than {_LONGEST_PATH} bytes.")
    else:
        return True
    return False


def rank(path: str) -> tuple[int, bool, int, str]:
    """The sort key: the most important files come first."""
    folder, _, name = path.rpartition("/")
    top = folder.partition("/")[0]
    return _FIRST.index(top) if top in _FIRST else len(_FIRST), name not in _OURS, path.count("/"), path


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size} bytes"


class Names:
    """Gives each file of a try a name to show and a name to store. All names differ."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._shown: set[str] = set()
        self._keys: set[str] = set()

    def of(self, path: str) -> tuple[str, str]:
        """The name to show and the name to store."""
        name = _unique(shown(path), path, self._shown)
        key = "/".join(_NOT_PLAIN.sub(_escaped, part) for part in path.split("/"))
        if PLAIN_KEY.fullmatch(path):
            key = path
        if not has_room(f"{self._prefix}/{key}"):
            key = f"=long~{_digest(path)}"
        return name, _unique(key, path, self._keys)

    def another_key(self, path: str) -> str:
        """A second name to store, if the first one conflicts with another file."""
        return _unique(f"=more~{_digest(path)}", path, self._keys)


def shown(path: str) -> str:
    """A path for users. Characters that cannot be printed are percent-encoded, and the middle of a long path is cut."""
    text = "".join(char if char.isprintable() and char != "\\" else _percent(char) for char in path)
    if len(text) <= _LONGEST_SHOWN:
        return text
    half = _LONGEST_SHOWN // 2
    return f"{text[:half]}…{_digest(path)[:8]}…{text[-half:]}"


def _unique(name: str, path: str, taken: set[str]) -> str:
    wanted, number = name, 0
    while wanted in taken:
        number += 1
        wanted = f"{name[:100]}~{_digest(f'{path}/{number}')[:16]}"
    taken.add(wanted)
    return wanted


def _digest(path: str) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()


def _escaped(char: re.Match[str]) -> str:
    return "".join(f"={byte:02X}" for byte in os.fsencode(char[0]))


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in os.fsencode(char))
