"""What is kept, and for how long. Results stay for ever; the files of old attempts and of dead workers go."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.domain.trial import TrialState
from seatrial.engine.clock import Clock
from seatrial.engine.trials.trial_files import trial_prefix
from seatrial.ports.blobs import Blobs
from seatrial.ports.store import Store, TrialFilter
from seatrial.processes import ProcessName
from seatrial.removal import remove_tree


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
            place = trial_prefix(row.trial.id)
            blobs = [blob async for blob in self._blobs.list(place)]
            if not blobs:
                continue
            trials, files, size = trials + 1, files + len(blobs), size + sum(blob.size for blob in blobs)
            if not dry_run:
                await self._blobs.delete(place)
        dead = dead_work_dirs(self._work_dir)
        if not dry_run:
            await remove_dead_work_dirs(self._work_dir)
        return Freed(trials=trials, files=files, bytes=size, work_dirs=len(dead))


async def remove_dead_work_dirs(work_dir: Path) -> None:
    for directory in dead_work_dirs(work_dir):
        await asyncio.to_thread(remove_tree, directory)


def dead_work_dirs(work_dir: Path) -> list[Path]:
    """Directories of workers of this machine that no longer run; a home may be shared with other machines."""
    directories = list(work_dir.iterdir()) if work_dir.is_dir() else []
    owners = [(directory, ProcessName.of_folder(directory.name)) for directory in directories]
    return [directory for directory, owner in owners if owner is not None and owner.is_dead]
