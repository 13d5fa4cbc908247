"""Finds suspicious changes by comparing the layer that a sandbox wrote with those of its image.

Both sandboxes call it when grading begins and ends, docker with an engine of this machine. ``suspicion`` defines what
is suspicious. The sandbox controls its layer, so it is read by descriptor and within limits."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from seatrial.sandboxes.host.in_root import SandboxRoot, closing, reopened
from seatrial.sandboxes.suspicion import (
    ENTRIES_LIMIT,
    LIBRARY_DIRS,
    PATH,
    PROGRAM_DIRS,
    PYTHON_FILES,
    SHELL_FILES,
    SIZE_LIMIT,
    SearchPath,
    SuspectPaths,
    fingerprint,
    is_owned,
    is_watched_tool,
)

_NAMES_LIMIT = 5_000
"""Names of one directory that are read."""
_READ_LIMIT = 512 << 20
"""Bytes that are compared in total."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def find_suspicions(changes: Path, layers: Sequence[Path], search_path: str) -> tuple[str, ...]:
    """``layers`` are the image's, the topmost first. Blocking."""
    search = SearchPath.of(search_path)
    with ExitStack() as stack:
        changed = _Layer(SandboxRoot(stack.enter_context(closing(os.open(changes, _DIRECTORY)))))
        if not changed.tops:
            return ()
        image = _Image([SandboxRoot(stack.enter_context(closing(os.open(layer, _DIRECTORY)))) for layer in layers])
        owned = [path for path in changed.below((*PROGRAM_DIRS, *LIBRARY_DIRS), image) if is_owned(path)]
        tools = [path for path in changed.children(search.watched) if is_watched_tool(path, search)]
        paths = SuspectPaths(
            tools=tuple(tools),
            shell=tuple(changed.matching(SHELL_FILES)),
            python=tuple(changed.matching(PYTHON_FILES)),
            owned=tuple(path for path in owned if image.has(path)),
        )
        suspects = paths.with_contents(changed.contents(paths.all, paths.read_in_full), search)
        known = image.contents(suspects.compared_with, paths.read_in_full) if suspects else {}
    marks = suspects.marks(known)
    return tuple(sorted({*marks, PATH})) if changed.is_flooded else marks


class _Layer:
    """What the sandbox wrote. Directories that it did not touch are not there."""

    def __init__(self, root: SandboxRoot) -> None:
        self._root = root
        self._looked_at = 0
        self._read = 0
        self._lists: dict[str, list[tuple[str, bool]]] = {}
        """What was listed once: many patterns lead through the same directories."""
        self.tops = {name for name, _ in self._listed("/")}

    @property
    def is_flooded(self) -> bool:
        return self._looked_at > ENTRIES_LIMIT or self._read > _READ_LIMIT

    def children(self, directories: Iterable[str]) -> Iterator[str]:
        for directory in directories:
            yield from (f"{directory}/{name}" for name, _ in self._listed(directory))

    def below(self, directories: Iterable[str], image: _Image) -> Iterator[str]:
        """Files at any depth, but none in directories that the image does not have: they are all new."""
        pending = list(directories)
        while pending and not self.is_flooded:
            directory = pending.pop()
            for name, is_directory in self._listed(directory):
                path = f"{directory}/{name}"
                if not is_directory:
                    yield path
                elif image.has(path):
                    pending.append(path)

    def matching(self, patterns: Iterable[str]) -> Iterator[str]:
        for pattern in patterns:
            places = [""]
            for part in pattern.split("/")[1:]:
                places = [f"{place}/{name}" for place in places for name in self._named(place, part)]
            yield from places

    def contents(self, paths: Iterable[str], in_full: frozenset[str]) -> dict[str, bytes]:
        found = {}
        for path in sorted(paths):
            if self.is_flooded:
                break
            if (content := content_of(self._root, path)) is not None:
                self._read += len(content)
                found[path] = content if path in in_full else fingerprint(content)
        return found

    def _named(self, directory: str, part: str) -> list[str]:
        if not directory and not any(fnmatchcase(name, part) for name in self.tops):
            return []
        if "*" not in part:
            return [part]
        return [name for name, _ in self._listed(directory or "/") if fnmatchcase(name, part)]

    def _listed(self, directory: str) -> list[tuple[str, bool]]:
        if (known := self._lists.get(directory)) is None:
            self._lists[directory] = known = self._read_names(directory)
        return known

    def _read_names(self, directory: str) -> list[tuple[str, bool]]:
        top = directory.split("/")[1]
        if top and top not in self.tops:
            return []
        try:
            with self._root.directory(directory) as opened, os.scandir(opened) as entries:
                found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, _NAMES_LIMIT)]
                self._looked_at += len(found) if next(entries, None) is None else ENTRIES_LIMIT + 1
        except OSError:
            return []
        return found


class _Image:
    """The image's layers, the topmost first."""

    def __init__(self, layers: Sequence[SandboxRoot]) -> None:
        self._layers = layers

    def has(self, path: str) -> bool:
        return self._of(path) is not None

    def contents(self, paths: Iterable[str], in_full: frozenset[str]) -> dict[str, bytes]:
        found = {}
        for path in paths:
            if (layer := self._of(path)) is not None and (content := content_of(layer, path)) is not None:
                found[path] = content if path in in_full else fingerprint(content)
        return found

    def _of(self, path: str) -> SandboxRoot | None:
        """The topmost layer that has the file; none if a layer marks it as deleted."""
        for layer in self._layers:
            try:
                with layer.found(path, follow=False) as handle:
                    return None if stat.S_ISCHR(os.fstat(handle).st_mode) else layer
            except OSError:
                continue
        return None


def content_of(root: SandboxRoot, path: str) -> bytes | None:
    """Of a regular file or a link; of a long file the beginning, and its size. What was deleted is not there."""
    try:
        with root.found(path, follow=False) as handle:
            status = os.fstat(handle)
            if stat.S_ISLNK(status.st_mode):
                return b"-> " + os.fsencode(os.readlink("", dir_fd=handle))
            with reopened(handle) as file, os.fdopen(os.dup(file), "rb") as opened:
                return opened.read(SIZE_LIMIT) + (b"" if status.st_size <= SIZE_LIMIT else b"%d" % status.st_size)
    except OSError:
        return None
