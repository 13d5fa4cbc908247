"""Prepares paths for upload: packs directories; sends archives unchanged.

The digest of a directory is computed before packing, so that a task which the service already has is not sent.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import NotFound
from seatrial.task_content.digest import content_digest
from seatrial.task_content.folder import tasks_below
from seatrial.task_content.pack import pack


@dataclass(frozen=True)
class Parcel:
    """One task directory, or one archive of tasks."""

    path: Path
    scratch: Path

    @property
    def filename(self) -> str:
        return f"{self.path.resolve().name}.zip" if self.path.is_dir() else self.path.name

    def digest(self) -> str | None:
        """Digest of a directory; ``None`` for an archive, which the service reads."""
        return content_digest(self.path) if self.path.is_dir() else None

    def packed(self) -> Path:
        return pack(self.path, self.scratch / self.filename) if self.path.is_dir() else self.path

    def discard(self) -> None:
        """Deletes the packed file."""
        if self.path.is_dir():
            (self.scratch / self.filename).unlink(missing_ok=True)


@contextmanager
def parcels(paths: Sequence[Path | str]) -> Iterator[list[Parcel]]:
    """One parcel per task. Packed files are deleted when the block ends."""
    with tempfile.TemporaryDirectory(prefix="seatrial-pack-") as scratch:
        found: list[Parcel] = []
        for path in map(Path, paths):
            if not path.exists():
                raise NotFound(f"There is no file or folder {path}.")
            tasks = tasks_below(path) if path.is_dir() else [path]
            found += [Parcel(task, Path(scratch) / str(len(found) + n)) for n, task in enumerate(tasks)]
        yield found
