"""Unpacked tasks on this machine: a cache of what is in the blobs.

Every worker of a fleet reads tasks from the same blobs. A task is fetched once per machine, whichever process asks
first, and is used only if its content has the digest that the store knows it by: a broken or replaced archive is never
run.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.domain.task import Task
from seatrial.errors import SetupProblem
from seatrial.ports.blobs import Blobs
from seatrial.ports.tasks import TaskFiles, TaskReader
from seatrial.system.file_locks import file_lock
from seatrial.system.removal import remove_tree
from seatrial.task_content.digest import content_digest


@dataclass(frozen=True)
class UnpackedTasks:
    """Many trials may ask at once, in several processes."""

    blobs: Blobs
    readers: Sequence[TaskReader]
    files: TaskFiles
    folder: Path
    _unpacking: dict[str, asyncio.Lock] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    async def directory(self, task: Task) -> Path:
        """A Harbor task directory. Unpacked once, then shared and never written."""
        home = self.home(task.digest)
        ready = home / "ready"
        if task.digest not in self._known or not ready.exists():  # it may have been removed and added again
            async with self._unpacking.setdefault(task.digest, asyncio.Lock()):
                if not ready.exists():
                    async with file_lock(self.folder / ".locks" / home.name[:2]):
                        if not ready.exists():
                            await self._unpack(task, home)
            self._unpacking.pop(task.digest, None)
            self._known.add(task.digest)
        return home / ready.read_text()

    def is_unpacking(self, digest: str) -> bool:
        return digest in self._unpacking

    async def remove(self, digest: str) -> None:
        self._known.discard(digest)
        await asyncio.to_thread(remove_tree, self.home(digest))

    def home(self, digest: str) -> Path:
        return self.folder / digest.removeprefix("sha256:")

    def source(self, task: Task) -> Path:
        """Where the files are as they were added, once the task is unpacked."""
        return self.home(task.digest) / "source" / _directory_name(task.name)

    async def _unpack(self, task: Task, home: Path) -> None:
        """Unpacks into a temporary directory and renames it, so that half a task is never seen."""
        self.folder.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".unpack-", dir=self.folder))
        try:
            archive = scratch / "task.zip"
            with archive.open("wb") as sink:
                async for piece in self.blobs.stream(archive_key(task.digest)):
                    sink.write(piece)
            await asyncio.to_thread(self._prepare, task, archive, scratch)
            archive.unlink()
            scratch.chmod(0o755)
            try:
                scratch.rename(home)
            except OSError:  # a worker of an earlier version, which takes no lock, was quicker
                if not (home / "ready").exists():
                    raise
        finally:
            remove_tree(scratch)

    def _prepare(self, task: Task, archive: Path, scratch: Path) -> None:
        source = scratch / "source" / _directory_name(task.name)
        self.files.unpack(archive, source)
        if content_digest(source) != task.digest:
            raise SetupProblem(
                f"The stored archive of the task {task.name} is not that task: its content has another digest.",
                fix="Add the task again.",
            )
        reader = next(reader for reader in self.readers if reader.format is task.format)
        runnable = reader.prepare(source, scratch / "harbor" / source.name)
        (scratch / "ready").write_text(runnable.relative_to(scratch).as_posix())


def archive_key(digest: str) -> str:
    """The key of a task's archive in the blobs."""
    return f"tasks/{digest.removeprefix('sha256:')}.zip"


def _directory_name(task_name: str) -> str:
    """Harbor names a task after its directory when its configuration has no name of its own."""
    return task_name.replace("/", "__")
