"""Suspicions from the layers of an overlay on this machine: the one that the sandbox wrote to, and the image's below.

``oci`` and, with an engine of this machine, ``sandbox_container`` ask when grading begins. ``suspicion`` says what is
of interest."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from seatrial.sandboxes.host.private_mounts import PrivateMounts
from seatrial.sandboxes.suspicion import PYTHON_FILES, SHELL_FILES, SIZE_LIMIT, SearchPath, SuspectPaths, is_tool


def find_suspicions(mounts: PrivateMounts, changes: Path, layers: Sequence[Path], search_path: str) -> tuple[str, ...]:
    """``layers`` are the image's, the topmost first. Blocking; for a thread of ``mounts``."""
    search = SearchPath.of(search_path)
    with mounts.rooted(changes):
        paths = SuspectPaths(
            tools=tuple(_tools(search)), shell=tuple(_matching(SHELL_FILES)), python=tuple(_matching(PYTHON_FILES))
        )
        suspects = paths.with_contents(_contents(paths.all), search)
    image: dict[str, bytes] = {}
    for layer in layers if suspects else ():
        with mounts.rooted(layer):
            image = _contents(suspects.compared_with) | image
    return suspects.marks(image)


def _tools(search: SearchPath) -> Iterator[str]:
    for directory in search.watched:
        try:
            names = [path.name for path in Path(directory).iterdir()]
        except OSError:
            continue
        yield from (f"{directory}/{name}" for name in names if is_tool(name))


def _matching(patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        yield from (str(path) for path in Path("/").glob(pattern.lstrip("/")))


def _contents(paths: Iterable[str]) -> dict[str, bytes]:
    """Of regular files and links; what was deleted is not there."""
    found = ((path, _content(path)) for path in paths)
    return {path: content for path, content in found if content is not None}


def _content(path: str) -> bytes | None:
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return b"-> " + os.fsencode(Path(path).readlink())
        if not stat.S_ISREG(status.st_mode):
            return None
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(file, "rb") as opened:
        return opened.read(SIZE_LIMIT)
