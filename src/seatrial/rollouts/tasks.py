"""Finds tasks for rollouts: in a folder, in archives, or in a dataset registered in Seatrial.

Environments call this before any rollout. Both task formats are read; other formats than Harbor's are converted into a
cache, once per content. Nothing is executed, and nothing is written beside the tasks.

The SHA-256 of an archive is checked if it is written down: in ``<archive>.sha256``, in ``SHA256SUMS`` of its folder
(both as written by ``sha256sum``), or in ``manifest.json`` (names to digests, or entries with a name and ``sha256``).
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from seatrial.domain.frozen import Frozen
from seatrial.domain.task import Severity, Task, TaskSelection
from seatrial.engine.jobs.choice import dataset_tasks
from seatrial.errors import Conflict, InvalidArchive, InvalidInput, NotFound
from seatrial.ports.tasks import Inspection
from seatrial.rollouts.background import BackgroundLoop
from seatrial.settings import Settings
from seatrial.task_content.folder import tasks_below
from seatrial.wiring import open_installation, task_readers, unpack_archive

_LOG = logging.getLogger(__name__)
_ARCHIVES = (".tar.gz", ".tgz", ".zip", ".tar")
_LISTS = ("SHA256SUMS", "sha256sums.txt")
_MANIFEST = "manifest.json"
_LINE = re.compile(r"^([0-9a-fA-F]{64})(?:\s+\*?(\S.*))?$")
_NAMES = ("name", "file", "filename", "path", "archive")


class FoundTask(Frozen):
    """A task and the directory that Harbor runs it from."""

    task: Task
    directory: Path


class LeftOut(Frozen):
    """A task that cannot be rolled out, and why."""

    name: str
    reason: str


class FoundTasks(Frozen):
    tasks: tuple[FoundTask, ...]
    left_out: tuple[LeftOut, ...] = ()


class TaskFinder:
    """Blocking: task trees are read and hashed. ``dataset`` starts its own loop, so it works for any caller."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._home = settings.cache / "rollout-tasks"
        self._readers = task_readers()

    def in_place(self, path: Path, selection: TaskSelection) -> FoundTasks:
        """From a task, a folder of tasks or archives, or an archive. Raises ``InvalidInput`` if no task can be
        rolled out."""
        if not path.exists():
            raise NotFound(f"There is no file or folder {path}.")
        inspections = {root: self._inspect(root) for root in self._roots(path)}
        left_out = [_invalid(inspection) for inspection in inspections.values() if inspection.task is None]
        found = [(seen.task, root) for root, seen in inspections.items() if seen.task is not None]
        return self._chosen(found, selection, left_out, str(path))

    def dataset(self, name: str, selection: TaskSelection) -> FoundTasks:
        """From a dataset of this installation: ``name`` or ``name@version``."""
        loop = BackgroundLoop("seatrial-dataset")
        try:
            found = loop.wait(self._registered(name))
        finally:
            loop.stop()
        return self._chosen(found, selection, [], f"the dataset {name}", prepared=True)

    async def _registered(self, name: str) -> list[tuple[Task, Path]]:
        async with open_installation(self._settings) as installation:
            tasks = await dataset_tasks(installation.store.tasks, name)
            return [(task, await installation.library.directory(task)) for task in tasks]

    def _chosen(
        self,
        found: Sequence[tuple[Task, Path]],
        selection: TaskSelection,
        left_out: Iterable[LeftOut],
        place: str,
        prepared: bool = False,
    ) -> FoundTasks:
        admitted = selection.model_copy(update={"sample": None, "limit": None}).apply(task for task, _ in found)
        refused = [*left_out, *(LeftOut(name=task.name, reason=why) for task in admitted if (why := _obstacle(task)))]
        places = {(task.name, task.digest): root for task, root in found}
        chosen = selection.apply(task for task in admitted if not _obstacle(task))
        if not chosen:
            reasons = "; ".join(f"{one.name}: {one.reason}" for one in refused)
            raise InvalidInput(f"No task of {place} was selected. {reasons}".strip(), field="tasks")
        for one in refused:
            _LOG.warning("Task %s is left out: %s", one.name, one.reason)
        return FoundTasks(
            tasks=tuple(
                FoundTask(
                    task=task,
                    directory=places[task.name, task.digest]
                    if prepared
                    else self._prepared(task, places[task.name, task.digest]),
                )
                for task in chosen
            ),
            left_out=tuple(refused),
        )

    def _roots(self, path: Path) -> list[Path]:
        if path.is_file():
            return tasks_below(self._unpacked(path))
        archives = sorted(child for child in path.iterdir() if child.name.endswith(_ARCHIVES) and child.is_file())
        roots = [root for archive in archives for root in tasks_below(self._unpacked(archive))]
        try:
            return [*tasks_below(path), *roots]
        except InvalidInput:
            if not roots:
                raise
            return roots

    def _unpacked(self, archive: Path) -> Path:
        """The archive's content, checked and unpacked once per content."""
        digest = checked_digest(archive)
        name = next(archive.name.removesuffix(kind) for kind in (*_ARCHIVES, "") if archive.name.endswith(kind))
        into = self._home / "archives" / digest / name
        if not into.is_dir():
            try:
                unpack_archive(self._settings, archive, into)
            except (Conflict, OSError):
                if not into.is_dir():  # otherwise another process was faster, with the same content
                    raise
        return into

    def _inspect(self, root: Path) -> Inspection:
        return next(reader for reader in self._readers if reader.recognises(root)).inspect(root)

    def _prepared(self, task: Task, root: Path) -> Path:
        reader = next(reader for reader in self._readers if reader.format is task.format)
        into = self._home / "harbor" / task.digest.removeprefix("sha256:") / root.resolve().name
        return reader.prepare(root, into)


def _obstacle(task: Task) -> str:
    if task.steps:
        return "it has several steps, and a rollout has one prompt"
    if task.services:
        return f"it needs further services ({', '.join(task.services)})"
    if task.resources.gpus:
        return "it needs a GPU"
    return "" if task.os == "linux" else f"it needs {task.os}"


def _invalid(inspection: Inspection) -> LeftOut:
    problems = (str(problem) for problem in inspection.problems if problem.severity is Severity.ERROR)
    return LeftOut(name=inspection.name, reason=next(problems, "it is not valid"))


def checked_digest(archive: Path) -> str:
    """The archive's SHA-256; raises ``InvalidArchive`` if a different one is written down."""
    with archive.open("rb") as source:
        actual = hashlib.file_digest(source, "sha256").hexdigest()
    for place, expected in _expectations(archive):
        if expected != actual:
            raise InvalidArchive(
                archive.name,
                f"its SHA-256 is {actual}, but {place} says {expected}",
                fix="Fetch the archive again, or correct the digest.",
            )
    return actual


def _expectations(archive: Path) -> Iterator[tuple[str, str]]:
    beside = archive.with_name(f"{archive.name}.sha256")
    if beside.is_file():
        yield from ((beside.name, digest) for digest, name in _lines(beside) if name in (None, archive.name))
    for listing in (archive.with_name(name) for name in _LISTS):
        if listing.is_file():
            yield from ((listing.name, digest) for digest, name in _lines(listing) if name == archive.name)
    manifest = archive.with_name(_MANIFEST)
    if manifest.is_file():
        yield from ((manifest.name, digest) for name, digest in _entries(manifest) if name == archive.name)


def _lines(file: Path) -> Iterator[tuple[str, str | None]]:
    for line in file.read_text().splitlines():
        if found := _LINE.match(line.strip()):
            yield found[1].lower(), Path(found[2]).name if found[2] else None


def _entries(file: Path) -> Iterator[tuple[str, str]]:
    try:
        content = json.loads(file.read_text())
    except ValueError as error:
        raise InvalidArchive(file.name, f"it is not JSON: {error}") from error
    yield from _named(content)


def _named(content: Any) -> Iterator[tuple[str, str]]:
    """Digests by file name, in any of the usual formats."""
    if isinstance(content, list):
        for entry in content:
            yield from _named(entry)
    elif isinstance(content, dict):
        digest = content.get("sha256")
        if isinstance(digest, str):
            yield from ((Path(str(content[key])).name, _bare(digest)) for key in _NAMES if key in content)
        for name, value in content.items():
            if isinstance(value, str) and _LINE.match(_bare(value)):
                yield Path(name).name, _bare(value)
            elif isinstance(value, dict) and isinstance(value.get("sha256"), str):
                yield Path(name).name, _bare(value["sha256"])
            elif isinstance(value, list | dict):
                yield from _named(value)


def _bare(digest: str) -> str:
    return digest.removeprefix("sha256:").lower()
