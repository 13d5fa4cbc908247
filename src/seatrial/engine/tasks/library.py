"""The task library: adds tasks, stores them by content, and provides directories to run them from.

A task is stored as one archive in the blobs. So any worker on any machine can read it, and a job does not change when
its source folder is edited. Unpacked copies are a cache in ``SEATRIAL_HOME/tasks``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from seatrial.domain.task import Severity, Task, TaskProblem
from seatrial.engine.clock import Clock
from seatrial.engine.tasks.unpacked import UnpackedTasks, archive_key
from seatrial.errors import InvalidInput, InvalidTask, NotFound
from seatrial.ports.blobs import Blobs
from seatrial.ports.store import TaskStore
from seatrial.ports.tasks import Inspection, TaskFiles, TaskReader
from seatrial.system.removal import scratch_directory

_HASH = re.compile(r"[0-9a-f]{64}")
_DIGEST = re.compile(r"(sha256:)?[0-9A-Za-z_-]+")


@dataclass(frozen=True)
class Candidates:
    """Valid tasks that may be added to the library."""

    tasks: tuple[Task, ...]
    roots: tuple[Path, ...]
    _add: Callable[[Task, Path], Awaitable[None]]

    async def add(self) -> list[Task]:
        """Adds them."""
        for task, root in zip(self.tasks, self.roots, strict=True):
            await self._add(task, root)
        return list(self.tasks)


@dataclass(frozen=True)
class TaskLibrary:
    """Many trials may call it at once."""

    tasks: TaskStore
    blobs: Blobs
    readers: Sequence[TaskReader]
    files: TaskFiles
    tasks_dir: Path
    clock: Clock

    @cached_property
    def unpacked(self) -> UnpackedTasks:
        return UnpackedTasks(self.blobs, self.readers, self.files, self.tasks_dir)

    async def inspect(self, path: Path) -> list[Inspection]:
        """Every task at ``path`` (a directory, a folder of tasks, an archive) with all of its problems."""
        async with self._opened(path) as roots:
            return [await asyncio.to_thread(self._look_at, root) for root in roots]

    async def add(self, path: Path) -> list[Task]:
        """Adds all tasks at ``path``, or none if one is invalid."""
        async with self.candidates([path]) as found:
            return await found.add()

    @asynccontextmanager
    async def candidates(self, paths: Sequence[Path]) -> AsyncIterator[Candidates]:
        """The tasks at these paths, which can be added in the block. Raises if one of them is invalid."""
        async with AsyncExitStack() as opened:
            roots = [root for path in paths for root in await opened.enter_async_context(self._opened(path))]
            inspections = [await asyncio.to_thread(self._look_at, root) for root in roots]
            refuse_invalid(inspections)
            tasks = tuple(inspection.task for inspection in inspections if inspection.task is not None)
            yield Candidates(tasks, tuple(roots), self._add)

    async def has(self, task: Task | None) -> bool:
        """Whether a task of the same content was added before."""
        try:
            return task is not None and bool(await self.tasks.get(task.digest))
        except NotFound:
            return False

    def pack(self, path: Path, into: Path, *, as_file: bool = False) -> list[Path]:
        """One archive for each task at ``path``, in the folder ``into`` and named after its directory. ``as_file``: the
        one task there is becomes ``into`` itself."""
        with self.files.open(path) as roots:
            if as_file and len(roots) != 1:
                problem = f"There are {len(roots)} tasks in {path}, and {into} is one file."
                raise InvalidInput(problem, field="output", fix="Name a folder.")
            archives = [into if as_file else into / f"{root.name}.zip" for root in roots]
            archives[0].parent.mkdir(parents=True, exist_ok=True)
            for root, archive in zip(roots, archives, strict=True):
                self.files.pack(root, archive)
        return archives

    async def directory(self, task: Task) -> Path:
        """A Harbor task directory for this task. Unpacked once on this machine, then shared and never written."""
        return await self._unpacked(task.digest).directory(task)

    async def source(self, task: Task) -> Path:
        """The files of the task as they were added. Shared and never written."""
        await self.directory(task)
        return self._unpacked(task.digest).source(task)

    def archive(self, digest: str) -> AsyncIterator[bytes]:
        """The task as one ZIP file."""
        return self.blobs.stream(archive_key(digest))

    async def remove(self, digest: str) -> None:
        """Deletes a task with all of its files. Raises ``Conflict`` while something needs it."""
        await self.tasks.delete(digest)
        await self.blobs.delete(archive_key(digest))
        await self._unpacked(digest).remove(digest)

    async def forget_removed(self) -> None:
        """Removes unpacked copies of tasks that another process has removed, if that one could not reach them."""
        places = list(self.tasks_dir.iterdir()) if self.tasks_dir.is_dir() else []
        for place in places:
            digest = f"sha256:{place.name}"
            if _HASH.fullmatch(place.name) and not self.unpacked.is_unpacking(digest):
                try:
                    await self.tasks.get(digest)
                except NotFound:
                    await self.unpacked.remove(digest)

    def _unpacked(self, digest: str) -> UnpackedTasks:
        if not _DIGEST.fullmatch(digest):  # it comes from the store, which others write too
            raise InvalidInput(f"{digest!r} is not the digest of a task.", field="digest")
        return self.unpacked

    @asynccontextmanager
    async def _opened(self, path: Path) -> AsyncIterator[list[Path]]:
        """Runs in a thread, because unpacking takes long."""
        opening = self.files.open(path)
        roots = await asyncio.to_thread(opening.__enter__)
        try:
            yield roots
        finally:
            await asyncio.to_thread(opening.__exit__, None, None, None)

    async def _add(self, task: Task, root: Path) -> None:
        key = archive_key(task.digest)
        with scratch_directory("seatrial-pack-") as scratch:
            archive = scratch / "task.zip"
            await asyncio.to_thread(self.files.pack, root, archive)
            await self.blobs.put_file(key, archive)
        await self.tasks.save(task, self.clock())

    def _look_at(self, root: Path) -> Inspection:
        for reader in self.readers:
            if reader.recognises(root):
                return reader.inspect(root)
        problem = TaskProblem(
            file=root.name,
            message="This is not a task: it has neither task.toml nor task.yaml.",
            fix="Point at a task directory, a folder of tasks, or an archive of one.",
        )
        return Inspection(name=root.name, task=None, problems=(problem,))


def refuse_invalid(inspections: Sequence[Inspection]) -> None:
    """Raises for the tasks that cannot run: one ``InvalidTask``, or one error that names them all."""
    invalid = [inspection for inspection in inspections if inspection.task is None]
    if not invalid:
        return
    faults = [InvalidTask(bad.name, tuple(p for p in bad.problems if p.severity is Severity.ERROR)) for bad in invalid]
    if len(faults) == 1:
        raise faults[0]
    raise InvalidInput("\n".join(fault.message for fault in faults), field="tasks")
