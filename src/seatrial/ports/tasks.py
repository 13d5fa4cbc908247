"""Task formats: recognising, checking and preparing a task directory. One implementation per format."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from seatrial.domain.frozen import Frozen
from seatrial.domain.task import Task, TaskFormat, TaskProblem


class Inspection(Frozen):
    """What a look at a task directory found. ``task`` is there whenever nothing is wrong."""

    name: str
    task: Task | None
    problems: tuple[TaskProblem, ...] = ()
    """Errors and warnings, all at once."""


class TaskReader(Protocol):
    format: TaskFormat

    def recognises(self, root: Path) -> bool:
        """Whether the directory claims to be of this format (``task.toml`` or ``task.yaml`` at its top)."""
        ...

    def inspect(self, root: Path) -> Inspection:
        """Reads and checks everything; never executes, never follows a link out of ``root``."""
        ...

    def prepare(self, root: Path, into: Path) -> Path:
        """A Harbor task directory that runs this task; ``root`` itself where the format needs no mapping.

        Deterministic: the same content gives the same files."""
        ...


class TaskFiles(Protocol):
    """Task directories and archives on disk. Archives are hostile until proven otherwise (``InvalidArchive``)."""

    def open(self, path: Path) -> AbstractContextManager[list[Path]]:
        """The task directories at ``path``: itself, those below it, or those in an archive (unpacked meanwhile)."""
        ...

    def pack(self, root: Path, target: Path) -> None:
        """One archive of one task, byte for byte the same for the same content."""
        ...

    def unpack(self, archive: Path, into: Path) -> None: ...
