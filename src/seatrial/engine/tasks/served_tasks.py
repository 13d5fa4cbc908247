"""Finds tasks by name: first in a folder that the operator serves (``TB2_DIR``), then in the library.

A task of the folder whose files changed is added to the library again.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from seatrial.domain.task import Task
from seatrial.engine.tasks.library import TaskLibrary
from seatrial.errors import NotFound
from seatrial.ports.store import TaskStore

_Print = frozenset[tuple[str, int, int, int]]
_TASK_FILES = ("task.toml", "task.yaml")
_NAME = re.compile(r"(?!\.)[\w.+ -]{1,120}")


class ServedTasks:
    def __init__(self, library: TaskLibrary, tasks: TaskStore, folder: Path | None) -> None:
        self._library = library
        self._tasks = tasks
        self._folder = folder
        self._seen: dict[str, tuple[_Print, str]] = {}
        self._reading: dict[str, asyncio.Lock] = {}

    async def find(self, name: str) -> Task:
        """Raises ``NotFound``, or ``InvalidTask`` if the task is in the folder and cannot run."""
        root = self._root(name)
        if root is not None:
            async with self._reading.setdefault(name, asyncio.Lock()):
                return await self._from_folder(name, root)
        registered = await self._tasks.find(name, limit=1) if name.isprintable() else []
        if not registered:
            raise NotFound(f"There is no task {name!r}.")
        return registered[0]

    def _root(self, name: str) -> Path | None:
        """A name is one directory of the folder. Names that could lead elsewhere are refused."""
        if self._folder is None or not _NAME.fullmatch(name):
            return None
        root = self._folder / name
        if root.is_symlink() or not any((root / marker).is_file() for marker in _TASK_FILES):
            return None
        return root

    async def _from_folder(self, name: str, root: Path) -> Task:
        now = await asyncio.to_thread(_fingerprint, root)
        seen, digest = self._seen.get(name, (None, ""))
        if seen == now:
            try:
                return await self._tasks.get(digest)
            except NotFound:
                pass  # it was removed from the library
        [task] = await self._library.add(root)
        self._seen[name] = (now, task.digest)
        return task


def _fingerprint(root: Path) -> _Print:
    """Changes when a file is written, added, removed or made executable. Reads no content."""
    found = set()
    for directory, _, names in os.walk(root):
        for name in names:
            path = f"{directory}/{name}"
            status = os.lstat(path)
            found.add((path, status.st_mtime_ns, status.st_size, status.st_mode))
    return frozenset(found)
