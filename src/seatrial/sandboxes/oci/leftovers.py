"""Finds and removes daemonless sandboxes whose process died, by their records.

Workers call ``remove`` at their start and at intervals, with a predicate that knows the store's leases. Only sandboxes
with a record whose owner is gone, and old directories without a record, are touched.
"""

from __future__ import annotations

import logging
import re
import time
from contextlib import suppress
from pathlib import Path

from seatrial.sandboxes.host.cgroups import VIEWS, Cgroups
from seatrial.sandboxes.host.processes import send
from seatrial.sandboxes.host.root_mount import RootMount
from seatrial.sandboxes.oci.container_spec import MARK
from seatrial.sandboxes.oci.gvisor.runsc import is_sandbox
from seatrial.sandboxes.record import FILE, Abandoned, SandboxRecord, remove_recorded

_PATIENCE_SEC = 10.0
_NAME = re.compile(r"st-[0-9a-z-]+")
_UNTOUCHED_SEC = 600.0
_NUMBER_LENGTH = 20
_log = logging.getLogger(__name__)


class Leftovers:
    """All sandboxes of the ``oci`` kind in one cache, of any process. Blocking."""

    def __init__(self, run_dir: Path, cgroups: Cgroups | None = None) -> None:
        self._run_dir = run_dir
        self._cgroups = cgroups or Cgroups.found()

    def sandboxes(self) -> list[SandboxRecord]:
        """All sandboxes, alive or not."""
        directories = sorted(self._run_dir.iterdir()) if self._run_dir.is_dir() else []
        records = [SandboxRecord.read(directory) for directory in directories]
        return [record for record in records if record is not None]

    def find(self, abandoned: Abandoned | None = None) -> list[SandboxRecord]:
        """Sandboxes whose process is gone, or that are abandoned."""
        return [
            record
            for record in self.sandboxes()
            if not record.process.lives or (abandoned is not None and abandoned(record))
        ]

    def remove(self, abandoned: Abandoned | None = None) -> list[SandboxRecord]:
        """Removes what ``find`` finds, and returns what is completely gone. A failure is logged, does not stop the
        others, and is found again by the next sweep."""
        return [record for record in self.find(abandoned) if self._is_removed(record)]

    def _is_removed(self, record: SandboxRecord) -> bool:
        try:
            problem = self._remove(record)
        except Exception as error:  # one sandbox must not stop the removal of others
            problem = f"{type(error).__name__}: {error}"
        if problem:
            _log.warning("Leftover sandbox %s could not be removed: %s", record.sandbox, problem)
        return not problem

    def _remove(self, record: SandboxRecord) -> str:
        """Returns what went wrong; empty if nothing did."""
        directory = self._run_dir / record.sandbox
        processes = _first_processes(directory, record.sandbox)
        for process in processes:
            send(process)
        if not _gone(processes, record.sandbox, directory):
            return "its processes do not end"
        if not self._cgroups.of(record.sandbox).remove():
            return "its cgroup is still in use"
        RootMount(directory).end()
        return remove_recorded(directory)


def remove_strays(run_dir: Path, now: float) -> int:
    """Removes directories of sandboxes without a record, and returns how many. Blocking.

    A record is written just after the directory is made, and removed just before it. So a directory without one that
    was not touched for a while belongs to a process that was killed in between."""
    return sum(_stray_is_removed(directory) for directory in find_strays(run_dir, now))


def find_strays(run_dir: Path, now: float) -> list[Path]:
    places = sorted(run_dir.iterdir()) if run_dir.is_dir() else []
    return [place for place in places if _NAME.fullmatch(place.name) and _is_stray(place, now)]


def _is_stray(place: Path, now: float) -> bool:
    with suppress(OSError):
        is_unrecorded = not place.is_symlink() and place.is_dir() and not (place / FILE).exists()
        return is_unrecorded and place.stat().st_mtime < now - _UNTOUCHED_SEC
    return False


def _stray_is_removed(directory: Path) -> bool:
    RootMount(directory).end()
    return not remove_recorded(directory)


def _first_processes(directory: Path, sandbox: str) -> list[int]:
    """The containers' first processes. When the outer one ends, every process of the sandbox ends.

    Only the bundles are read: the sandbox wrote the other files, and they may have any name."""
    found = []
    for view in VIEWS:
        try:
            with (directory / view / "pid").open() as file:
                process = int(file.read(_NUMBER_LENGTH))
        except (OSError, ValueError):
            continue
        if _is_ours(process, sandbox) or is_sandbox(process, directory):
            found.append(process)
    return found


def _is_ours(process: int, sandbox: str) -> bool:
    """The kernel reuses process numbers, so the mark in the environment decides."""
    try:
        environment = Path(f"/proc/{process}/environ").read_bytes()
    except OSError:
        return False
    return f"{MARK}={sandbox}".encode() in environment.split(b"\0")


def _gone(processes: list[int], sandbox: str, directory: Path) -> bool:
    until = time.monotonic() + _PATIENCE_SEC
    while any(_is_ours(process, sandbox) or is_sandbox(process, directory) for process in processes):
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True
