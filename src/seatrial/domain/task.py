"""Tasks and datasets. Knows no file system and no Harbor."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase

from pydantic import Field

from seatrial.domain.frozen import Frozen
from seatrial.domain.numbers import LARGEST_COUNT, LARGEST_ID


class TaskFormat(StrEnum):
    HARBOR = "harbor"
    """``task.toml``: Harbor and Terminal-Bench 2."""
    TERMINAL_BENCH_1 = "terminal-bench-1"
    """``task.yaml``: Terminal-Bench 1."""


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class TaskProblem(Frozen):
    """One problem of a task: what, where, and how to fix it."""

    file: str
    message: str
    line: int | None = None
    fix: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.message}" + (f" Fix: {self.fix}" if self.fix else "")


class Resources(Frozen):
    """Resources that a task requests; ``None``: the sandbox's default."""

    cpus: float | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    gpus: int = 0


class Task(Frozen):
    """One task, identified by the digest of its content."""

    digest: str
    """``sha256:`` and 64 hex digits over every file's path, mode and bytes."""
    name: str
    format: TaskFormat
    instruction: str
    description: str = ""
    category: str = ""
    difficulty: str = ""
    tags: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    """Names of the steps of a multi-step task; empty for a single-step one."""
    agent_timeout_sec: float | None = None
    verifier_timeout_sec: float | None = None
    build_timeout_sec: float | None = None
    resources: Resources = Resources()
    docker_image: str | None = None
    network_mode: str | None = None
    os: str = "linux"
    architecture: str = ""
    """The architecture that its Dockerfile asks for, such as ``amd64``; empty for any."""
    elevated: bool = False
    """Whether its main service asks for elevated privileges."""
    services: tuple[str, ...] = ()
    """Compose services besides the main one; a task with any needs a container engine."""
    has_solution: bool = True
    size_bytes: int = 0
    warnings: tuple[TaskProblem, ...] = ()


class TaskRef(Frozen):
    """A task by name and digest, as jobs and datasets refer to it."""

    name: str
    digest: str


class Dataset(Frozen):
    """A named, versioned list of tasks."""

    name: str
    version: str = "1"
    description: str = ""
    tasks: tuple[TaskRef, ...] = ()
    created_at: datetime | None = None

    @property
    def id(self) -> str:
        return f"{self.name}@{self.version}"


class TaskSelection(Frozen):
    """Selects tasks of a folder or a dataset: filters first, then sampling, then the limit."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    difficulties: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    sample: int | None = Field(default=None, ge=1, le=LARGEST_COUNT)
    seed: int = Field(default=0, ge=-LARGEST_ID, le=LARGEST_ID)
    limit: int | None = Field(default=None, ge=1, le=LARGEST_COUNT)

    def apply(self, tasks: Iterable[Task]) -> tuple[Task, ...]:
        """The selected tasks, by name. The same seed always draws the same sample."""
        chosen = sorted((task for task in tasks if self._admits(task)), key=lambda task: (task.name, task.digest))
        if self.sample is not None and self.sample < len(chosen):
            picked = random.Random(self.seed).sample(range(len(chosen)), self.sample)  # noqa: S311
            chosen = [chosen[index] for index in sorted(picked)]
        return tuple(chosen[: self.limit])

    def _admits(self, task: Task) -> bool:
        if self.include and not any(fnmatchcase(task.name, glob) for glob in self.include):
            return False
        if any(fnmatchcase(task.name, glob) for glob in self.exclude):
            return False
        if self.categories and task.category not in self.categories:
            return False
        if self.difficulties and task.difficulty not in self.difficulties:
            return False
        return not self.tags or bool(set(self.tags) & set(task.tags))
