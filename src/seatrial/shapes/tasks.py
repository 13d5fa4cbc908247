"""Tasks, and the results of uploads."""

from __future__ import annotations

from seatrial.domain.frozen import common_values, trusted
from seatrial.domain.task import Resources, Task, TaskFormat, TaskProblem
from seatrial.engine.tasks.task_files import TaskFile
from seatrial.ports.tasks import Inspection
from seatrial.shapes.answers import Listing, Problem, Shape


class TaskItem(Shape):
    """A task in a list."""

    digest: str
    name: str
    format: TaskFormat
    description: str
    category: str
    difficulty: str
    tags: list[str]
    steps: list[str]
    agent_timeout_sec: float | None
    resources: Resources
    docker_image: str | None
    services: list[str]
    has_solution: bool
    size_bytes: int
    warnings: int

    @classmethod
    def of(cls, task: Task) -> TaskItem:
        values = common_values(cls, task)
        lists = {"tags": list(task.tags), "steps": list(task.steps), "services": list(task.services)}
        return trusted(cls, values | lists | {"warnings": len(task.warnings)})


class TaskPage(Listing[TaskItem]):
    """One page of tasks, by name."""


class TakenArchive(Shape):
    """The result for one uploaded archive: its tasks, or the reason why it was refused."""

    filename: str
    tasks: list[Task]
    error: Problem | None


class TakenArchives(Shape):
    items: list[TakenArchive]


class TaskCheck(Shape):
    """One task of an archive, with all its problems."""

    name: str
    valid: bool
    task: Task | None
    problems: list[TaskProblem]
    known: bool = False
    """Whether the library already has this task."""

    @classmethod
    def of(cls, found: Inspection, known: bool = False) -> TaskCheck:
        valid = found.task is not None
        return cls(name=found.name, valid=valid, task=found.task, problems=list(found.problems), known=known)


class CheckedArchive(Shape):
    filename: str
    inspections: list[TaskCheck]
    error: Problem | None


class CheckedArchives(Shape):
    items: list[CheckedArchive]


class TaskFileList(Shape):
    items: list[TaskFile]
