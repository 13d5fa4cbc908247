"""Opens and unpacks archives of tasks (``ports.tasks.TaskFiles``). The first bytes of an archive decide its format; its
name does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial.adapters.archives.rules import ArchiveLimits, Rule
from seatrial.adapters.archives.staging import staged
from seatrial.adapters.archives.tar_reader import unpack_tar
from seatrial.adapters.archives.zip_reader import unpack_zip
from seatrial.errors import InvalidArchive, InvalidInput
from seatrial.system.removal import scratch_directory
from seatrial.task_content.folder import find_tasks, tasks_below
from seatrial.task_content.pack import pack

_TAR_MAGIC_AT = 257


def unpack(archive: Path, into: Path, limits: ArchiveLimits | None = None) -> Path:
    """Unpacks the archive as the folder ``into``, completely or not at all. Blocking; call it in a thread.

    Every member is checked against every rule while it is unpacked; declared sizes are not trusted. A broken rule
    raises ``InvalidArchive`` with the member and the rule, and leaves nothing behind. Nothing is written outside
    ``into``. Links that stay inside are kept, hard links become separate files, and of the modes only the executable
    bit is kept.
    """
    limits = limits or ArchiveLimits()
    kind = _kind(archive)
    if kind is None:
        raise InvalidArchive(archive.name, Rule.UNKNOWN_FORMAT, fix="Upload a .zip, .tar or .tar.gz file.")
    with staged(into) as staging:
        if kind == "zip":
            unpack_zip(archive, staging, limits)
        else:
            unpack_tar(archive, staging, limits, gzipped=kind == "gzip")
    return into


def _kind(archive: Path) -> str | None:
    with archive.open("rb") as source:
        head = source.read(_TAR_MAGIC_AT + 5)
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return "zip"
    if head[:2] == b"\x1f\x8b":
        return "gzip"
    return "tar" if head[_TAR_MAGIC_AT:] == b"ustar" else None


class ArchiveFiles:
    """Task directories and archives on disk, for the engine's library."""

    def __init__(self, limit_bytes: int = ArchiveLimits().max_bytes) -> None:
        self._limits = ArchiveLimits(max_bytes=limit_bytes)
        # The library's own archives were valid tasks of any size. Only the rules that protect the folder still apply.
        self._own = ArchiveLimits(max_bytes=1 << 50, max_members=1 << 30, max_ratio=1 << 30, portable_names=False)

    @contextmanager
    def open(self, path: Path) -> Iterator[list[Path]]:
        """The task directories at ``path``. Those of an archive are removed when the block ends."""
        with scratch_directory("seatrial-tasks-") as scratch:
            yield find_tasks(path, lambda archive, name: unpack(archive, scratch / name, self._limits))

    def pack(self, root: Path, target: Path) -> None:
        pack(root, target)

    def unpack(self, archive: Path, into: Path) -> None:
        """Unpacks the one task of an archive of the library as ``into``, whether it is at the top or in a folder."""
        into.parent.mkdir(parents=True, exist_ok=True)
        with scratch_directory(".unpack-", into.parent) as scratch:
            tasks = tasks_below(unpack(archive, scratch / into.name, self._own))
            if len(tasks) != 1:
                raise InvalidInput(f"{archive.name} contains {len(tasks)} tasks; expected one.")
            tasks[0].rename(into)
