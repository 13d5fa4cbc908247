"""What sandboxes left behind when their process died, found by their records and removed.

A worker calls ``remove`` when it starts and now and then, with a predicate that knows the store's leases; a doctor may
list. Only what carries a record of ours and whose owner is gone is touched; everything else on the machine stays.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from seatrial.sandboxes.host.processes import send
from seatrial.sandboxes.host.root_mount import RootMount
from seatrial.sandboxes.oci.cgroups import VIEWS, Cgroups
from seatrial.sandboxes.oci.container_spec import MARK
from seatrial.sandboxes.record import Abandoned, SandboxRecord, remove_recorded

_PATIENCE_SEC = 10.0
_NUMBER_LENGTH = 20
_log = logging.getLogger(__name__)


class Leftovers:
    """Sandboxes of the ``oci`` kind in one cache, whichever process they belong to. Blocking."""

    def __init__(self, run_dir: Path, cgroups: Cgroups | None = None) -> None:
        self._run_dir = run_dir
        self._cgroups = cgroups or Cgroups.found()

    def sandboxes(self) -> list[SandboxRecord]:
        """All that there are, living or not."""
        directories = sorted(self._run_dir.iterdir()) if self._run_dir.is_dir() else []
        records = [SandboxRecord.read(directory) for directory in directories]
        return [record for record in records if record is not None]

    def find(self, abandoned: Abandoned | None = None) -> list[SandboxRecord]:
        """Those whose process is gone, or that are abandoned."""
        return [
            record
            for record in self.sandboxes()
            if not record.process.lives or (abandoned is not None and abandoned(record))
        ]

    def remove(self, abandoned: Abandoned | None = None) -> list[SandboxRecord]:
        """Removes what ``find`` finds; returns what could be removed entirely. What could not is told, keeps nothing
        else from being removed, and is found again by the next sweep."""
        return [record for record in self.find(abandoned) if self._is_removed(record)]

    def _is_removed(self, record: SandboxRecord) -> bool:
        try:
            problem = self._remove(record)
        except Exception as error:  # whatever one sandbox left must not keep the others
            problem = f"{type(error).__name__}: {error}"
        if problem:
            _log.warning("Leftover sandbox %s could not be removed: %s", record.sandbox, problem)
        return not problem

    def _remove(self, record: SandboxRecord) -> str:
        """Returns what is in the way, or nothing."""
        directory = self._run_dir / record.sandbox
        processes = _first_processes(directory, record.sandbox)
        for process in processes:
            send(process)
        if not _gone(processes, record.sandbox):
            return "its processes do not end"
        if not self._cgroups.of(record.sandbox).remove():
            return "its cgroup is still in use"
        RootMount(directory).end()
        return remove_recorded(directory)


def _first_processes(directory: Path, sandbox: str) -> list[int]:
    """The containers' first processes. The end of the outer one is the end of every process of the sandbox.

    Only the bundles are looked into: beside them lies what the sandbox wrote, and its files may have any name."""
    found = []
    for view in VIEWS:
        try:
            with (directory / view / "pid").open() as file:
                process = int(file.read(_NUMBER_LENGTH))
        except (OSError, ValueError):
            continue
        if _is_ours(process, sandbox):
            found.append(process)
    return found


def _is_ours(process: int, sandbox: str) -> bool:
    """Numbers are used again; the mark in a process's environment is not."""
    try:
        environment = Path(f"/proc/{process}/environ").read_bytes()
    except OSError:
        return False
    return f"{MARK}={sandbox}".encode() in environment.split(b"\0")


def _gone(processes: list[int], sandbox: str) -> bool:
    until = time.monotonic() + _PATIENCE_SEC
    while any(_is_ours(process, sandbox) for process in processes):
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True
