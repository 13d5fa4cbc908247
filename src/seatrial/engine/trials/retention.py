"""Removes files of old tries and of dead workers. Results are never removed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.domain.trial import TrialState
from seatrial.engine.clock import Clock
from seatrial.engine.trials.trial_files import trial_prefix
from seatrial.ports.blobs import Blobs
from seatrial.ports.store import Store, TrialFilter
from seatrial.processes import WorkerName
from seatrial.removal import remove_tree

_UNTOUCHED_SEC = 86400.0
_TRY = re.compile(r"(\d+)-(\d+)")

Running = Callable[[], Awaitable[set[tuple[int, int]]]]
"""The tries that run, as (trial, try)."""


class RetentionReport(Frozen):
    trials: int = 0
    files: int = 0
    bytes: int = 0
    work_dirs: int = 0


@dataclass(frozen=True)
class Retention:
    store: Store
    blobs: Blobs
    clock: Clock
    work_dir: Path

    async def apply(self, keep: timedelta, dry_run: bool) -> RetentionReport:
        """Removes files of trials that ended longer than ``keep`` ago, and work directories of dead processes."""
        horizon = self.clock() - keep
        trials = files = size = 0
        async for row in self.store.trials.each(TrialFilter(states=(TrialState.ENDED,))):
            if row.trial.ended_at is None or row.trial.ended_at > horizon:
                continue
            place = trial_prefix(row.trial.id)
            blobs = [blob async for blob in self.blobs.list(place)]
            if not blobs:
                continue
            trials, files, size = trials + 1, files + len(blobs), size + sum(blob.size for blob in blobs)
            if not dry_run:
                await self.blobs.delete(place)
        known = {row.worker for row in await self.store.workers.all()}
        dead = dead_work_dirs(self.work_dir, known, self.clock().timestamp())
        if not dry_run:
            await remove_dead_work_dirs(self.work_dir, known, self.clock().timestamp())
        return RetentionReport(trials=trials, files=files, bytes=size, work_dirs=len(dead))


async def remove_dead_work_dirs(work_dir: Path, known: Collection[str] = (), now: float = 0.0) -> None:
    for directory in dead_work_dirs(work_dir, known, now):
        await asyncio.to_thread(remove_tree, directory)


async def remove_lost_tries(work_dir: Path, silent: Collection[str], running: Running) -> None:
    """Removes directories of ended tries from the work directories of silent workers on any machine.

    Lists the directories before it asks the store what runs, because a try is claimed before its directory exists."""
    owned = [(place, WorkerName.of_folder(place.name)) for place in (work_dir.iterdir() if work_dir.is_dir() else ())]
    lost = [place for place, owner in owned if owner is not None and str(owner) in silent]
    tries = [(place, found) for folder in lost for place in folder.iterdir() if (found := _TRY.fullmatch(place.name))]
    if not tries:
        return
    wanted = await running()
    for place, found in tries:
        if (int(found[1]), int(found[2])) not in wanted:
            await asyncio.to_thread(remove_tree, place)


def dead_work_dirs(work_dir: Path, known: Collection[str] = (), now: float = 0.0) -> list[Path]:
    """Directories of processes that are gone, or very likely gone.

    A home may be shared with other machines and containers, whose processes cannot be seen from here. A directory of
    such a process counts as left behind when none of the ``known`` workers has its name and nothing was written to it
    for a day. Without ``now``, only directories of dead processes are returned."""
    directories = [place for place in work_dir.iterdir() if place.is_dir()] if work_dir.is_dir() else []
    return [place for place in directories if _is_left(place, known, now)]


def _is_left(directory: Path, known: Collection[str], now: float) -> bool:
    owner = WorkerName.of_folder(directory.name)
    if owner is not None and owner.process.is_dead:
        return True
    if owner is not None and str(owner) in known:
        return False
    return _written_at(directory) < now - _UNTOUCHED_SEC


def _written_at(directory: Path) -> float:
    latest = 0.0
    with suppress(OSError):
        latest = directory.stat().st_mtime
        latest = max([latest, *(place.stat().st_mtime for place in directory.iterdir())])
    return latest
