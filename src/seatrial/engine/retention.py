"""What is kept, and for how long. Results stay for ever; the files of old attempts and of dead workers go."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from datetime import timedelta
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.domain.trial import TrialState
from seatrial.engine.clock import Clock
from seatrial.ports.blobs import Blobs
from seatrial.ports.store import Store, TrialFilter
from seatrial.processes import start_time


class Freed(Frozen):
    trials: int = 0
    files: int = 0
    bytes: int = 0
    work_dirs: int = 0


class Retention:
    def __init__(self, store: Store, blobs: Blobs, clock: Clock, work_dir: Path) -> None:
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._work_dir = work_dir

    async def apply(self, keep: timedelta, dry_run: bool) -> Freed:
        """Removes files of trials that ended longer ago than ``keep``, and work directories whose process is gone."""
        horizon = self._clock() - keep
        trials = files = size = 0
        async for row in self._store.trials(TrialFilter(states=(TrialState.ENDED,))):
            if row.trial.ended_at is None or row.trial.ended_at > horizon:
                continue
            blobs = [blob async for blob in self._blobs.list(f"trials/{row.trial.id}")]
            if not blobs:
                continue
            trials, files, size = trials + 1, files + len(blobs), size + sum(blob.size for blob in blobs)
            if not dry_run:
                await self._blobs.delete(f"trials/{row.trial.id}")
        dead = list(dead_work_dirs(self._work_dir))
        if not dry_run:
            for directory in dead:
                await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
        return Freed(trials=trials, files=files, bytes=size, work_dirs=len(dead))


def dead_work_dirs(work_dir: Path) -> list[Path]:
    """Directories of workers that no longer run; they are named ``<pid>-<start time>``."""
    dead = []
    with contextlib.suppress(FileNotFoundError):
        for directory in work_dir.iterdir():
            pid, _, started = directory.name.partition("-")
            if pid.isdigit() and started.isdigit() and start_time(int(pid)) != int(started):
                dead.append(directory)
    return dead
