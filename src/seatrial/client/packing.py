"""What users point at, as archives that can go up: directories are packed first, archives go as they are.

The digest of a directory is known before it is packed, so that a task which the service has already stays here.
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
        """Of a directory; what an archive holds is for the service to find out."""
        return content_digest(self.path) if self.path.is_dir() else None

    def packed(self) -> Path:
        return pack(self.path, self.scratch / self.filename) if self.path.is_dir() else self.path

    def discard(self) -> None:
        """Frees the room that it took."""
        if self.path.is_dir():
            (self.scratch / self.filename).unlink(missing_ok=True)


@contextmanager
def parcels(paths: Sequence[Path | str]) -> Iterator[list[Parcel]]:
    """Those of a folder of tasks one by one. What was packed is gone when the block ends."""
    with tempfile.TemporaryDirectory(prefix="seatrial-pack-") as scratch:
        found: list[Parcel] = []
        for path in map(Path, paths):
            if not path.exists():
                raise NotFound(f"There is no file or folder {path}.")
            tasks = tasks_below(path) if path.is_dir() else [path]
            found += [Parcel(task, Path(scratch) / str(len(found) + n)) for n, task in enumerate(tasks)]
        yield found
