"""Notes of how worker processes ended, written by their supervisor and read by the worker that recovers their trials.

One small file per process, in a folder that only the account of the workers can write. Files are used because a
supervisor has no connection to the store. Also reads how often the kernel killed for lack of memory, because only that
tells such a kill from one by an operator.
"""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from seatrial.domain.fleet.worker_death import Exit
from seatrial.system.processes import ProcessIdentity, WorkerName
from seatrial.system.whole_files import write_whole

_KEPT_SEC = 86400.0
_FOLDER = "exits"
_CGROUPS = Path("/sys/fs/cgroup")


def worker_of(pid: int) -> WorkerName | None:
    """The name of a worker process of this machine; ``None`` if there is no such process."""
    process = ProcessIdentity.of(pid)
    return None if process is None else WorkerName(socket.gethostname(), process)


@dataclass(frozen=True)
class ExitNotes:
    """The notes in one folder, next to the work directories of the workers."""

    folder: Path

    @classmethod
    def beside(cls, work_dir: Path) -> ExitNotes:
        return cls(work_dir.parent / _FOLDER)

    def write(self, worker: WorkerName, seen: Exit) -> None:
        """Writes a note, whole or not at all. Without one, it is not known how the worker ended."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._remove_old()
            write_whole(self._place(worker), seen.model_dump_json())

    def read(self, worker: WorkerName) -> Exit | None:
        try:
            return Exit.model_validate_json(self._place(worker).read_bytes())
        except (OSError, ValueError):
            return None

    def _place(self, worker: WorkerName) -> Path:
        return self.folder / f"{worker.folder}.json"

    def _remove_old(self) -> None:
        for note in self.folder.iterdir():
            with contextlib.suppress(OSError):
                if note.stat().st_mtime < time.time() - _KEPT_SEC:
                    note.unlink()


class ExitWatch:
    """Writes the notes of a supervisor. Its workers are in its own cgroup."""

    def __init__(self, notes: ExitNotes) -> None:
        self._notes = notes
        self._kills = count_memory_kills() or 0

    def note(self, worker: WorkerName | None, status: int) -> None:
        """To be called at once when a worker has ended. ``worker`` is ``None`` if it ended before it had a name."""
        memory_kill = self._was_memory()
        if worker is not None:
            self._notes.write(worker, Exit(status=status, memory_kill=memory_kill))

    def _was_memory(self) -> bool:
        """Takes one kill from the kernel's count, because two workers may have been killed at once."""
        more = (count_memory_kills() or 0) > self._kills
        self._kills += more
        return more


def own_cgroup(cgroups: Path = _CGROUPS, process: Path = Path("/proc/self/cgroup")) -> Path | None:
    """The folder with the memory counters of this process's cgroup, of either version."""
    try:
        lines = [line.split(":", 2) for line in process.read_text().splitlines()]
    except OSError:
        return None
    places = [cgroups / "memory" / path.lstrip("/") for _, kinds, path in lines if "memory" in kinds.split(",")]
    places += [cgroups / path.lstrip("/") for number, _, path in lines if number == "0"]
    # A container sees its own cgroup as the root.
    return next((place for place in [*places, cgroups / "memory", cgroups] if _counter(place) is not None), None)


def memory_kills() -> tuple[str, int | None]:
    """The cgroup of this process, and how many of its processes the kernel has killed for lack of memory."""
    place = own_cgroup()
    return (str(place), count_memory_kills(place)) if place is not None else ("", None)


def count_memory_kills(place: Path | None = None) -> int | None:
    """How many processes of the cgroup the kernel has killed for lack of memory, without those of cgroups below it."""
    place = place or own_cgroup()
    counter = _counter(place) if place is not None else None
    if counter is None:
        return None
    try:
        numbers = dict(line.split() for line in counter.read_text().splitlines() if len(line.split()) == 2)
    except OSError:
        return None
    return int(numbers["oom_kill"]) if "oom_kill" in numbers else None


def _counter(place: Path) -> Path | None:
    names = ("memory.events.local", "memory.events", "memory.oom_control")
    return next((place / name for name in names if (place / name).is_file()), None)
