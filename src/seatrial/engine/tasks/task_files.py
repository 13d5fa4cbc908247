"""Lists and reads the files of a task. A path is looked up in the list before it is opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.domain.task import Task
from seatrial.engine.tasks.library import TaskLibrary
from seatrial.engine.trials.found_files import regular_files
from seatrial.engine.trials.save_files import media_type
from seatrial.errors import NotFound

_PIECE = 1 << 20
_TEXT = (".sh", ".py", ".yaml", ".yml", ".toml", ".md", ".cfg", ".ini", ".c", ".js", ".html", ".css", ".xml", ".csv")


class TaskFile(Frozen):
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class OpenableFile:
    path: Path
    size: int
    media_type: str


async def list_files(library: TaskLibrary, task: Task) -> list[TaskFile]:
    root = await library.source(task)

    def look() -> list[TaskFile]:
        return [TaskFile(path=name, size=(root / name).lstat().st_size) for name in regular_files(root)]

    return await asyncio.to_thread(look)


async def find_file(library: TaskLibrary, task: Task, path: str) -> OpenableFile:
    root = await library.source(task)
    for file in await list_files(library, task):
        if file.path == path:
            return OpenableFile(root / path, file.size, _kind(path))
    raise NotFound(f"Task {task.name} has no such file.")


async def read_file(path: Path, start: int, length: int) -> AsyncIterator[bytes]:
    with path.open("rb") as source:
        source.seek(start)
        while length > 0 and (piece := await asyncio.to_thread(source.read, min(_PIECE, length))):
            length -= len(piece)
            yield piece


def _kind(path: str) -> str:
    """Scripts and pages are shown as plain text."""
    name = path.rsplit("/", 1)[-1].lower()
    plain = name.endswith(_TEXT) or "." not in name
    return "text/plain" if plain else media_type(path)
