"""Removes files of old tries and of dead workers. Results are never removed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.domain.trial import TrialState
from seatrial.engine.clock import Clock
from seatrial.engine.trials.trial_files import TRIALS, trial_prefix
from seatrial.errors import NotFound
from seatrial.ports.blobs import BlobInfo, Blobs
from seatrial.ports.store import Store, TrialFilter, TrialRow
from seatrial.system.processes import WorkerName
from seatrial.system.removal import remove_tree

_UNTOUCHED_SEC = 86400.0
_TRY = re.compile(r"(\d+)-(\d+)")
_TRIAL = re.compile(r"trials/(\d{1,18})/")
_ARCHIVE = re.compile(r"tasks/([0-9a-f]{64})\.zip")

Running = Callable[[], Awaitable[set[tuple[int, int]]]]
"""The tries that run, as (trial, try)."""


class RetentionReport(Frozen):
    trials: int = 0
    files: int = 0
    """Of those trials."""
    bytes: int = 0
    """Of all files that were removed."""
    orphans: int = 0
    """Files of trials and tasks that no longer exist."""
    work_dirs: int = 0


@dataclass(frozen=True)
class Retention:
    store: Store
    blobs: Blobs
    clock: Clock
    work_dir: Path

    async def apply(self, keep: timedelta, dry_run: bool) -> RetentionReport:
        """Removes files of trials that ended longer than ``keep`` ago, orphaned files, and work
        directories of dead processes.

        Only the store knows which files are needed, so nothing else may remove them by their age."""
        report = await self._trial_files(self.clock() - keep, dry_run)
        lost = await self._lost_archives(dry_run)
        known = {row.worker for row in await self.store.workers.all()}
        dead = dead_work_dirs(self.work_dir, known, self.clock().timestamp())
        if not dry_run:
            await remove_dead_work_dirs(self.work_dir, known, self.clock().timestamp(), self._running)
        orphans, size = report.orphans + len(lost), report.bytes + sum(blob.size for blob in lost)
        return report.model_copy(update={"orphans": orphans, "bytes": size, "work_dirs": len(dead)})

    async def _running(self) -> set[tuple[int, int]]:
        rows = self.store.trials.each(TrialFilter(states=(TrialState.RUNNING,)))
        return {(row.trial.id, row.trial.try_number) async for row in rows}

    async def _trial_files(self, horizon: datetime, dry_run: bool) -> RetentionReport:
        """Lists the files before it asks the store, because a trial is in the store before it has files.

        One listing of everything: a request for each trial would take an object store hours."""
        found: dict[int, tuple[int, int]] = {}
        async for blob in self.blobs.list(TRIALS):
            if (owner := _TRIAL.match(blob.key)) is not None:
                files, size = found.get(int(owner[1]), (0, 0))
                found[int(owner[1])] = (files + 1, size + blob.size)
        old: list[int] = []
        orphans = set(found)
        async for row in self.store.trials.each(TrialFilter()) if found else _nothing():
            trial = row.trial
            orphans.discard(trial.id)
            ended = trial.ended_at if trial.state is TrialState.ENDED else None
            if trial.id in found and ended is not None and ended <= horizon:
                old.append(trial.id)
        for trial_id in [*old, *orphans] if not dry_run else ():
            await self.blobs.delete(trial_prefix(trial_id))
        return RetentionReport(
            trials=len(old),
            files=sum(found[trial_id][0] for trial_id in old),
            bytes=sum(found[trial_id][1] for trial_id in {*old, *orphans}),
            orphans=sum(found[trial_id][0] for trial_id in orphans),
        )

    async def _lost_archives(self, dry_run: bool) -> list[BlobInfo]:
        """Archives whose task was never added or is deleted. A task is saved after its archive, so new ones stay."""
        before = self.clock() - timedelta(seconds=_UNTOUCHED_SEC)
        lost: list[BlobInfo] = []
        async for blob in self.blobs.list("tasks"):
            if (archive := _ARCHIVE.fullmatch(blob.key)) is not None and blob.modified_at < before:
                try:
                    await self.store.tasks.get(f"sha256:{archive[1]}")
                except NotFound:
                    lost.append(blob)
        for blob in lost if not dry_run else ():
            await self.blobs.delete(blob.key)
        return lost


async def _nothing() -> AsyncIterator[TrialRow]:
    return
    yield


async def remove_dead_work_dirs(
    work_dir: Path, known: Collection[str] = (), now: float = 0.0, running: Running | None = None
) -> None:
    """Keeps the folders of tries that still count as running: recovery reads there what a lost try used. Without
    ``running`` every try may be such a one."""
    dead = dead_work_dirs(work_dir, known, now)
    wanted = await running() if running is not None and dead else None
    for directory in dead:
        tries = {number for place in directory.iterdir() if (number := _number(place)) is not None}
        if not (tries if wanted is None else tries & wanted):
            await asyncio.to_thread(remove_tree, directory)


async def remove_lost_tries(work_dir: Path, silent: Collection[str], running: Running) -> None:
    """Removes directories of ended tries from the work directories of silent workers on any machine.

    Lists the directories before it asks the store what runs, because a try is claimed before its directory exists."""
    owned = [(place, WorkerName.of_folder(place.name)) for place in (work_dir.iterdir() if work_dir.is_dir() else ())]
    lost = [place for place, owner in owned if owner is not None and str(owner) in silent]
    tries = [(place, found) for folder in lost for place in folder.iterdir() if (found := _number(place))]
    if not tries:
        return
    wanted = await running()
    for place, found in tries:
        if found not in wanted:
            await asyncio.to_thread(remove_tree, place)


def _number(place: Path) -> tuple[int, int] | None:
    """The trial and the try whose folder it is."""
    found = _TRY.fullmatch(place.name)
    return None if found is None else (int(found[1]), int(found[2]))


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
