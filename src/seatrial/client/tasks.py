"""Methods for tasks and datasets. Each function describes a request; a group turns it into a method."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from seatrial.client.ask import Archive, Ask, Paged, Progress, given, nothing, place, reads
from seatrial.client.driver import Driver, Plan
from seatrial.client.verbs import Group, list_verb, verb
from seatrial.domain.task import Dataset, Task, TaskFormat
from seatrial.engine.tasks.task_files import TaskFile
from seatrial.errors import InvalidInput, InvalidTask, NotFound
from seatrial.shapes.answers import Problem
from seatrial.shapes.datasets import (
    DatasetImport,
    DatasetItem,
    DatasetList,
    DatasetRequest,
    DatasetTaskPage,
    SampleTasks,
)
from seatrial.shapes.tasks import (
    CheckedArchive,
    CheckedArchives,
    TakenArchive,
    TakenArchives,
    TaskCheck,
    TaskFileList,
    TaskItem,
    TaskPage,
)
from seatrial.shapes.trials import TrialItem, TrialPage
from seatrial.task_content.digest import content_digest
from seatrial.task_content.folder import refuse_missing, tasks_below
from seatrial.task_content.pack import pack


def upload_tasks(*paths: Path | str, progress: Progress | None = None) -> Plan[list[TakenArchive]]:
    """Uploads task directories, folders of tasks and archives; returns the result of each.

    A directory that the service already has is not sent. A refused one does not affect the others; if all are refused,
    the error is raised.
    """

    async def upload(driver: Driver) -> list[TakenArchive]:
        taken: list[TakenArchive] = []
        refused: list[InvalidInput] = []
        with _parcels(paths) as found:
            for parcel in found:
                known = await _known(driver, parcel)
                if known is not None:
                    taken.append(TakenArchive(filename=parcel.filename, tasks=[known], error=None))
                    continue
                try:
                    taken += (await _sent(driver, parcel, "/tasks", TakenArchives, progress)).items
                except InvalidInput as error:
                    refused.append(error)
                    taken.append(TakenArchive(filename=parcel.filename, tasks=[], error=_problem(error)))
        if refused and len(refused) == len(taken):
            raise refused[0] if len(refused) == 1 else _all_refused(refused)
        return taken

    return upload


def validate_tasks(*paths: Path | str, progress: Progress | None = None) -> Plan[list[CheckedArchive]]:
    """Validates every task at the paths; the service stores nothing. A directory that it already has is not sent."""

    async def validate(driver: Driver) -> list[CheckedArchive]:
        checked: list[CheckedArchive] = []
        with _parcels(paths) as found:
            for parcel in found:
                known = await _known(driver, parcel)
                if known is not None:
                    each = TaskCheck(name=known.name, valid=True, task=known, problems=list(known.warnings), known=True)
                    checked.append(CheckedArchive(filename=parcel.filename, inspections=[each], error=None))
                else:
                    checked += (await _sent(driver, parcel, "/tasks/validate", CheckedArchives, progress)).items
        return checked

    return validate


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

    upload = verb(upload_tasks)
    validate = verb(validate_tasks)
    list = list_verb(list_tasks)
    get = verb(get_task)
    delete = verb(delete_task)
    files = verb(list_files)
    read = verb(read_file)
    download = verb(download_task)
    history = list_verb(task_history)
    add_samples = verb(add_samples)


async def _known(driver: Driver, parcel: _Parcel) -> Task | None:
    digest = await driver.io.work(parcel.digest)
    try:
        return None if digest is None else await driver.ask(get_task(digest))
    except NotFound:
        return None


async def _sent[Shape: BaseModel](
    driver: Driver, parcel: _Parcel, path: str, shape: type[Shape], progress: Progress | None
) -> Shape:
    """Safe to repeat: tasks are identified by content."""
    try:
        up = Archive(parcel.filename, await driver.io.work(parcel.packed), progress)
        return await driver.ask(Ask("POST", path, reads(shape), archive=up, repeatable=True))
    finally:
        parcel.discard()


def _problem(error: InvalidInput) -> Problem:
    problems = list(error.problems) if isinstance(error, InvalidTask) else []
    code = "invalid_task" if problems else "invalid_input"
    return Problem(code=code, message=error.message, fix=error.fix, field=error.field, problems=problems)


def _all_refused(errors: list[InvalidInput]) -> InvalidInput:
    problems = tuple(problem for error in errors if isinstance(error, InvalidTask) for problem in error.problems)
    message = "\n".join(str(error) for error in errors)
    return InvalidTask("", problems, message=message) if problems else InvalidInput(message, field="files")


@dataclass(frozen=True)
class _Parcel:
    """One task directory, or one archive of tasks."""

    path: Path
    scratch: Path

    @property
    def filename(self) -> str:
        return f"{self.path.resolve().name}.zip" if self.path.is_dir() else self.path.name

    def digest(self) -> str | None:
        """Digest of a directory, so that a task which the service already has is not sent. ``None`` for an archive."""
        return content_digest(self.path) if self.path.is_dir() else None

    def packed(self) -> Path:
        return pack(self.path, self.scratch / self.filename) if self.path.is_dir() else self.path

    def discard(self) -> None:
        """Deletes the packed file."""
        if self.path.is_dir():
            (self.scratch / self.filename).unlink(missing_ok=True)


@contextmanager
def _parcels(paths: Sequence[Path | str]) -> Iterator[list[_Parcel]]:
    """One parcel per task. Packed files are deleted when the block ends."""
    with tempfile.TemporaryDirectory(prefix="seatrial-pack-") as scratch:
        found: list[_Parcel] = []
        for path in map(Path, paths):
            refuse_missing(path)
            tasks = tasks_below(path) if path.is_dir() else [path]
            found += [_Parcel(task, Path(scratch) / str(len(found) + n)) for n, task in enumerate(tasks)]
        yield found


def create_dataset(wanted: DatasetRequest) -> Ask[Dataset]:
    """Registers tasks under a name and a version. A version never changes."""
    once = (("Idempotency-Key", uuid.uuid4().hex),)
    return Ask("POST", "/datasets", reads(Dataset), body=wanted, headers=once, repeatable=True)


def import_dataset(name: str, version: str | None = None) -> Ask[Dataset]:
    """Imports a dataset and its tasks from the registry that the service is configured with. Admins only."""
    wanted = DatasetImport(name=name, version=version)
    return Ask("POST", "/datasets/import", reads(Dataset), body=wanted, is_long=True)


def list_datasets() -> Ask[list[DatasetItem]]:
    """All datasets, newest first."""
    return Ask("GET", "/datasets", lambda answer: reads(DatasetList)(answer).items)


def get_dataset(name: str, version: str | None = None) -> Ask[Dataset]:
    """One dataset with its tasks. Default version: the one saved last."""
    return Ask("GET", place("datasets", name), reads(Dataset), given(version=version))


def list_dataset_tasks(name: str, version: str, *, page_size: int = 200) -> Paged[Task]:
    """The tasks of a dataset with their limits and resources, in its order."""
    path = place("datasets", name, "tasks")
    return Paged(Ask("GET", path, reads(DatasetTaskPage), given(version=version, limit=page_size)))


class Datasets[Driver](Group[Driver]):
    """``client.datasets``"""

    create = verb(create_dataset)
    take_in = verb(import_dataset)
    list = verb(list_datasets)
    get = verb(get_dataset)
    tasks = list_verb(list_dataset_tasks)
