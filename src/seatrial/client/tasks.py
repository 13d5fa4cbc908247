"""Task methods. Each function describes a request; ``Tasks`` turns them into methods."""

from __future__ import annotations

from pathlib import Path

from seatrial.client.ask import Archive, Ask, Paged, Plan, Progress, Work, given, nothing, place, reads
from seatrial.client.packing import Parcel, parcels
from seatrial.client.verbs import Group, ListVerb, Verb
from seatrial.domain.task import Task, TaskFormat
from seatrial.engine.tasks.task_files import TaskFile
from seatrial.errors import InvalidInput, InvalidTask, NotFound
from seatrial.shapes.answers import Problem
from seatrial.shapes.datasets import SampleTasks
from seatrial.shapes.tasks import (
    CheckedArchive,
    CheckedArchives,
    TakenArchive,
    TakenArchives,
    TaskFileList,
    TaskItem,
    TaskPage,
)
from seatrial.shapes.trials import TrialItem, TrialPage


def upload_tasks(*paths: Path | str, progress: Progress | None = None) -> Plan[list[TakenArchive]]:
    """Uploads task directories, folders of tasks and archives; returns the result of each.

    A directory that the service already has is not sent. A refused one does not affect the others; if all are refused,
    the error is raised.
    """
    taken: list[TakenArchive] = []
    refused: list[InvalidInput] = []
    with parcels(paths) as found:
        for parcel in found:
            known = yield from _known(parcel)
            if known is not None:
                taken.append(TakenArchive(filename=parcel.filename, tasks=[known], error=None))
                continue
            try:
                archive: Path = yield Work(parcel.packed)
                sent: TakenArchives = yield _send(parcel, archive, progress)
                taken += sent.items
            except InvalidInput as error:
                refused.append(error)
                taken.append(TakenArchive(filename=parcel.filename, tasks=[], error=_problem(error)))
            parcel.discard()
    if refused and len(refused) == len(taken):
        raise refused[0] if len(refused) == 1 else _all_refused(refused)
    return taken


def validate_tasks(*paths: Path | str, progress: Progress | None = None) -> Plan[list[CheckedArchive]]:
    """Validates every task at the paths; the service stores nothing."""
    checked: list[CheckedArchive] = []
    with parcels(paths) as found:
        for parcel in found:
            archive: Path = yield Work(parcel.packed)
            up = Archive(parcel.filename, archive, progress)
            answer: CheckedArchives = yield Ask(
                "POST", "/tasks/validate", reads(CheckedArchives), archive=up, repeatable=True
            )
            checked += answer.items
            parcel.discard()
    return checked


def list_tasks(
    *,
    name: str | None = None,
    category: str | None = None,
    difficulty: str | None = None,
    tag: str | None = None,
    format: TaskFormat | None = None,
    q: str | None = None,
    latest: bool | None = None,
    page_size: int = 200,
) -> Paged[TaskItem]:
    """Tasks of the library, by name. ``q``: words to search for. ``latest``: with ``name``, only the task added or
    used last."""
    found = given(name=name, category=category, difficulty=difficulty, tag=tag, format=format, q=q, latest=latest)
    return Paged(Ask("GET", "/tasks", reads(TaskPage), {**found, "limit": page_size}))


def get_task(digest: str) -> Ask[Task]:
    """One task: its instruction, limits and resources."""
    return Ask("GET", place("tasks", digest), reads(Task))


def delete_task(digest: str) -> Ask[None]:
    """Deletes a task. Raises ``Conflict`` while a dataset, or a job that has not ended, uses it."""
    return Ask("DELETE", place("tasks", digest), nothing)


def list_files(digest: str) -> Ask[list[TaskFile]]:
    """Files of the task."""
    return Ask("GET", place("tasks", digest, "files"), lambda answer: reads(TaskFileList)(answer).items)


def read_file(digest: str, path: str) -> Ask[bytes]:
    """One file of a task."""
    return Ask("GET", place("tasks", digest, "files", path), lambda answer: answer.content)


def download_task(digest: str, into: Path) -> Ask[Path]:
    """The task as a ZIP file."""
    return Ask("GET", place("tasks", digest, "archive"), lambda answer: into, into=into)


def task_history(digest: str, *, page_size: int = 200) -> Paged[TrialItem]:
    """Every trial of tasks with this name, newest first."""
    return Paged(Ask("GET", place("tasks", digest, "history"), reads(TrialPage), given(limit=page_size)))


def add_samples() -> Ask[list[TaskItem]]:
    """Adds the bundled sample tasks to the library."""
    return Ask("POST", "/samples", lambda answer: reads(SampleTasks)(answer).items, repeatable=True)


class Tasks[Driver](Group[Driver]):
    """``client.tasks``"""

    upload = Verb(upload_tasks)
    validate = Verb(validate_tasks)
    list = ListVerb(list_tasks)
    get = Verb(get_task)
    delete = Verb(delete_task)
    files = Verb(list_files)
    read = Verb(read_file)
    download = Verb(download_task)
    history = ListVerb(task_history)
    add_samples = Verb(add_samples)


def _known(parcel: Parcel) -> Plan[Task | None]:
    digest: str | None = yield Work(parcel.digest)
    if digest is None:
        return None
    try:
        found: Task = yield get_task(digest)
    except NotFound:
        return None
    return found


def _send(parcel: Parcel, archive: Path, progress: Progress | None) -> Ask[TakenArchives]:
    """Safe to repeat: tasks are identified by content."""
    up = Archive(parcel.filename, archive, progress)
    return Ask("POST", "/tasks", reads(TakenArchives), archive=up, repeatable=True)


def _problem(error: InvalidInput) -> Problem:
    problems = list(error.problems) if isinstance(error, InvalidTask) else []
    code = "invalid_task" if problems else "invalid_input"
    return Problem(code=code, message=error.message, fix=error.fix, field=error.field, problems=problems)


def _all_refused(errors: list[InvalidInput]) -> InvalidInput:
    problems = tuple(problem for error in errors if isinstance(error, InvalidTask) for problem in error.problems)
    message = "\n".join(str(error) for error in errors)
    return InvalidTask("", problems, message=message) if problems else InvalidInput(message, field="files")
