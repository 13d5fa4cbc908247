"""Selects the tasks of a job or dataset: named tasks, those of a dataset, or all of the library, with filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager

from seatrial.domain.frozen import Frozen
from seatrial.domain.likeness import did_you_mean
from seatrial.domain.task import Dataset, Task, TaskFormat, TaskRef, TaskSelection
from seatrial.errors import InvalidInput, NotFound
from seatrial.ports.store import TaskStore

_CHUNK = 500


class TaskSearch(Frozen):
    """Which tasks of the library a listing shows."""

    name: str | None = None
    category: str | None = None
    difficulty: str | None = None
    tag: str | None = None
    format: TaskFormat | None = None
    q: str | None = None
    """Words in the name, the description or the instruction. Upper and lower case are the same."""

    def admits(self, task: Task) -> bool:
        exact = ((self.name, task.name), (self.category, task.category), (self.difficulty, task.difficulty))
        if any(wanted is not None and wanted != there for wanted, there in exact):
            return False
        if self.format is not None and task.format is not self.format:
            return False
        if self.tag is not None and self.tag not in task.tags:
            return False
        if not self.q:
            return True
        text = "\n".join((task.name, task.description, task.instruction, task.category, *task.tags)).casefold()
        return all(word in text for word in self.q.casefold().split())


async def search_tasks(library: TaskStore, search: TaskSearch, after: TaskRef | None, limit: int) -> list[Task]:
    """One page, by name. Reads chunks until the page is full, to save memory."""
    found: list[Task] = []
    async for task in every_task(library, after):
        if search.admits(task):
            found.append(task)
            if len(found) == limit:
                break
    return found


async def every_task(library: TaskStore, after: TaskRef | None = None) -> AsyncIterator[Task]:
    while chunk := await library.page(after, _CHUNK):
        for task in chunk:
            yield task
        if len(chunk) < _CHUNK:
            return
        after = TaskRef(name=chunk[-1].name, digest=chunk[-1].digest)


async def library_tasks(library: TaskStore, names: Sequence[str]) -> list[Task]:
    """Each by its digest or its name. A name means the task that was added or used last."""
    digests = [name for name in names if name.startswith("sha256:")]
    by_digest = {task.digest: task for task in await library.get_many(digests)}
    return [by_digest[name] if name in by_digest else await _by_name(library, name) for name in names]


def refuse_doubles(tasks: Iterable[Task]) -> None:
    """Refuses two tasks with the same name."""
    times = Counter(task.name for task in tasks)
    if doubled := sorted(name for name in times if times[name] > 1):
        raise InvalidInput(f"Several tasks have the same name: {', '.join(doubled)}.", field="tasks")


def dataset_of(name: str, version: str, description: str, tasks: Sequence[Task]) -> Dataset:
    """In the given order. The same tasks in another order are another dataset."""
    refuse_doubles(tasks)
    refs = tuple(TaskRef(name=task.name, digest=task.digest) for task in tasks)
    return Dataset(name=name, version=version, description=description, tasks=refs)


async def dataset_tasks(library: TaskStore, name: str) -> list[Task]:
    """The tasks of a registered dataset, ``NAME`` or ``NAME@VERSION``."""
    head, _, version = name.partition("@")
    dataset = await find_dataset(library, head, version or None)
    return await library.get_many([ref.digest for ref in dataset.tasks])


async def find_dataset(library: TaskStore, name: str, version: str | None) -> Dataset:
    """Raises ``NotFound`` with the name that may have been meant."""
    try:
        return await library.dataset(name, version)
    except NotFound as error:
        there = await library.datasets()
        versions = ", ".join(dataset.version for dataset in there if dataset.name == name)
        near = f"It has {versions}." if versions else did_you_mean(name, [dataset.name for dataset in there])
        raise NotFound(error.message, fix=f"{near} `seatrial dataset list` lists them.".lstrip()) from error


async def choose(
    library: TaskStore, names: Sequence[str], dataset: str | None, selection: TaskSelection, given: Sequence[Task] = ()
) -> tuple[Task, ...]:
    """The named tasks, or those of the whole library that match the selection. ``given`` are tasks that the library
    need not have yet."""
    if not names and not given and dataset is None and selection == TaskSelection():
        raise InvalidInput(
            "Nothing to run.", field="tasks", fix="Name tasks, a dataset, or a selection of the library."
        )
    with _as_input("tasks"):
        found = [*given, *await library_tasks(library, names)]
    if dataset is not None:
        with _as_input("dataset"):
            found += await dataset_tasks(library, dataset)
    elif not names and not given:
        found = [task async for task in every_task(library)]
    return narrow(found, selection)


def narrow(found: Iterable[Task], selection: TaskSelection) -> tuple[Task, ...]:
    """The same task twice counts once."""
    distinct = {task.digest: task for task in found}
    chosen = selection.apply(distinct.values())
    if not chosen:
        raise InvalidInput(
            f"None of {len(distinct)} task{'s' * (len(distinct) != 1)} is left after the filters.",
            field="tasks",
            fix="Loosen the filters, such as -i and -x.",
        )
    return chosen


@contextmanager
def _as_input(field: str) -> Iterator[None]:
    """Turns ``NotFound`` into ``InvalidInput``, because the request names something unknown."""
    try:
        yield
    except NotFound as error:
        raise InvalidInput(error.message, field=field, fix=error.fix) from error


async def _by_name(library: TaskStore, name: str) -> Task:
    found = await library.find(name, limit=1)
    if not found:
        raise no_task(name, [task.name async for task in every_task(library)])
    return found[0]


def no_task(name: str, known: Iterable[str]) -> NotFound:
    """The error for an unknown task, with the name that may have been meant."""
    return NotFound(
        f"There is no task {name!r}.", fix=f"{did_you_mean(name, known)} `seatrial task list` lists them.".lstrip()
    )
