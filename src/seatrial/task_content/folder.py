"""Finds tasks: a task directory, a folder of tasks, or an archive of either.

Called by the CLI and the upload routes, through ``wiring``. Knows only the two file names that identify the formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from seatrial.domain.likeness import did_you_mean
from seatrial.errors import InvalidInput, NotFound

_MARKERS = ("task.toml", "task.yaml")
_SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar")
_DEPTH = 4
_HOW_TASKS_LOOK = "A task has a task.toml (Harbor, Terminal-Bench 2) or a task.yaml (Terminal-Bench 1) at its top."


def is_task(path: Path) -> bool:
    return any((path / marker).is_file() for marker in _MARKERS)


def find_tasks(path: Path, unpack: Callable[[Path, str], Path]) -> list[Path]:
    """The task directories at ``path``, sorted by name.

    A file is an archive: ``unpack(file, name)`` must return a folder called ``name`` with its content, since a task at
    the top of an archive is named after the file. Raises ``NotFound`` if the path does not exist, ``InvalidInput`` if
    it contains no task.
    """
    refuse_missing(path)
    return tasks_below(path) if path.is_dir() else tasks_below(unpack(path, _stem(path.name)), path.name)


def refuse_missing(path: Path) -> None:
    """Raises ``NotFound`` if nothing is there, with the name beside it that may have been meant."""
    if path.exists():
        return
    beside = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
    library = "A task of the library is given with -t." if path.name == str(path) else ""
    raise NotFound(f"There is no file or folder {path}.", fix=f"{did_you_mean(path.name, beside)} {library}".strip())


def tasks_below(folder: Path, called: str = "") -> list[Path]:
    """The folder itself if it is a task, otherwise the tasks in it, a few levels deep. Links are not followed.

    ``called`` is the name to show for an unpacked folder.
    """
    found = sorted(_search(folder, _DEPTH), key=lambda task: (task.name, str(task)))
    if not found:
        raise InvalidInput(f"There is no task in {called or folder}.", fix=_HOW_TASKS_LOOK)
    return found


def _search(folder: Path, depth: int) -> Iterator[Path]:
    if is_task(folder):
        yield folder
    elif depth:
        for child in folder.iterdir():
            if child.is_dir() and not child.is_symlink() and not child.name.startswith((".", "__")):
                yield from _search(child, depth - 1)


def _stem(name: str) -> str:
    for suffix in _SUFFIXES:
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name
