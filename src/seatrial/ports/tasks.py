"""Reads task directories. There is one implementation per task format."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from seatrial.domain.frozen import Frozen
from seatrial.domain.task import Task, TaskFormat, TaskProblem


class Inspection(Frozen):
    """What a reader found in a task directory. ``task`` is set if there is no error."""

    name: str
    task: Task | None
    problems: tuple[TaskProblem, ...] = ()
    """Errors and warnings, all at once."""


class TaskReader(Protocol):
    format: TaskFormat

    def recognises(self, root: Path) -> bool:
        """Whether the directory looks like this format (``task.toml`` or ``task.yaml`` at its top)."""

    def inspect(self, root: Path) -> Inspection:
        """Reads and checks all files. Executes nothing, and follows no link out of ``root``."""

    def prepare(self, root: Path, into: Path) -> Path:
        """A Harbor task directory for this task; ``root`` itself if the task is in Harbor format.

        Deterministic: the same content gives the same files."""


class TaskFiles(Protocol):
    """Task directories and archives on disk. Archives are untrusted; a bad one raises ``InvalidArchive``."""

    def open(self, path: Path) -> AbstractContextManager[list[Path]]:
        """The task directories at ``path``: itself, those below it, or those of an archive, unpacked for the block."""

    def pack(self, root: Path, target: Path) -> None:
        """Packs one task. The same content gives the same bytes."""

    def unpack(self, archive: Path, into: Path) -> None: ...
