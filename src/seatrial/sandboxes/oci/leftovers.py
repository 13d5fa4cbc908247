"""What sandboxes left behind when their process died, found by their records and removed.

A worker calls ``remove`` when it starts and now and then, with a predicate that knows the store's leases; a doctor may
list. Only what carries a record of ours and whose owner is gone is touched; everything else on the machine stays.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from seatrial.sandboxes.host.root_mount import RootMount
from seatrial.sandboxes.oci.cgroups import Cgroups
from seatrial.sandboxes.oci.container_spec import MARK
from seatrial.sandboxes.record import SandboxRecord, remove_recorded

Abandoned = Callable[[SandboxRecord], bool]
"""Says of a sandbox whose process lives that nobody wants it any more: its trial's lease is gone."""

_PATIENCE_SEC = 10.0


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
        """Removes what ``find`` finds; returns what could be removed entirely."""
        return [record for record in self.find(abandoned) if self._remove(record)]

    def _remove(self, record: SandboxRecord) -> bool:
        directory = self._run_dir / record.sandbox
        processes = _first_processes(directory, record.sandbox)
        for process in processes:
            _kill(process)
        if not _gone(processes, record.sandbox):
            return False
        if not self._cgroups.cage(record.sandbox).remove():
            return False
        RootMount(directory).end()
        return remove_recorded(directory)


def _first_processes(directory: Path, sandbox: str) -> list[int]:
    """The containers' first processes. The end of the outer one is the end of every process of the sandbox."""
    found = []
    for place in directory.glob("*/pid"):
        try:
            process = int(place.read_text())
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


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
