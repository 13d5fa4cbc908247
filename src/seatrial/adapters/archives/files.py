"""Task directories and archives on disk, as the engine's library asks for them (``ports.tasks.TaskFiles``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial.adapters.archives.rules import ArchiveLimits
from seatrial.adapters.archives.unpack import unpack
from seatrial.errors import InvalidInput
from seatrial.removal import scratch_directory
from seatrial.task_content.folder import find_tasks, tasks_below
from seatrial.task_content.pack import pack


class ArchiveFiles:
    """Opens what users point at; packs and unpacks what the library keeps."""

    def __init__(self, limit_bytes: int = ArchiveLimits().max_bytes) -> None:
        self._limits = ArchiveLimits(max_bytes=limit_bytes)
        # What we packed ourselves was a valid task of any size; only the rules that keep it in its folder still hold.
        self._own = ArchiveLimits(max_bytes=1 << 50, max_members=1 << 30, max_ratio=1 << 30, portable_names=False)

    @contextmanager
    def open(self, path: Path) -> Iterator[list[Path]]:
        """The task directories at ``path``; those of an archive are gone when the block ends."""
        with scratch_directory("seatrial-tasks-") as scratch:
            yield find_tasks(path, lambda archive, name: unpack(archive, scratch / name, self._limits))

    def pack(self, root: Path, target: Path) -> None:
        pack(root, target)

    def unpack(self, archive: Path, into: Path) -> None:
        """The one task of an archive of ours as ``into`` itself, whether it lies at its top or in a folder."""
        into.parent.mkdir(parents=True, exist_ok=True)
        with scratch_directory(".unpack-", into.parent) as scratch:
            tasks = tasks_below(unpack(archive, scratch / into.name, self._own))
            if len(tasks) != 1:
                raise InvalidInput(f"{archive.name} holds {len(tasks)} tasks where one was expected.")
            tasks[0].rename(into)
