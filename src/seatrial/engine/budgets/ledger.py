"""What a worker has spent of each cap, in a file that outlives its process.

A worker reports to the store about once a second. If it is killed, only this file knows what it spent since then: it is
written before each call is sent and after each has ended. Another worker of the same machine then reports it in the
name of the dead one. Reports are totals, so it does not matter how much of it the store knew already.

One record of a fixed size for each holder, overwritten in place. A record lies within a page of the file, so a kill
leaves either the old one or the new one. It need not survive a power failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from seatrial.domain.model_calls.budget import NOTHING, Amount, Scope
from seatrial.domain.model_calls.budget_slices import SliceReport
from seatrial.engine.budgets.held_slice import HeldSlice
from seatrial.engine.clock import Clock
from seatrial.ports.store.budgets import BudgetStore
from seatrial.system.processes import WorkerName

_FOLDER = "ledgers"
_RECORD = 1024
_LAST_REPORT = 2**62
"""Comes after every report of the worker itself."""
_OLDEST_SEC = 43_200.0
"""The store remembers a holder for a day. Later, it could count the same spending twice."""
_LARGEST = 64 << 20


class Ledger:
    """Of one ``Budgets``. Writes are short and go to the page cache, so they run in the event loop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._places: dict[str, tuple[int, str]] = {}
        """Of each holder: where its record is, and how it begins."""
        self._free: list[int] = []

    def write(self, held: HeldSlice) -> None:
        known = self._places.get(held.holder)
        if known is None:
            place = self._free.pop() if self._free else len(self._places)
            named = json.dumps([held.holder, held.scope.name, held.scope.job_id, held.rank])[:-1]
            known = self._places[held.holder] = (place, named)
        place, named = known
        spent, ahead = held.spent, held.in_flight
        self._put(
            place,
            f"{named}, [{spent.nanodollars}, {spent.tokens}, {spent.calls}]"
            f", [{ahead.nanodollars}, {ahead.tokens}, {ahead.calls}]]",
        )

    def drop(self, holder: str) -> None:
        """The store knows everything about this holder."""
        known = self._places.pop(holder, None)
        if known is not None:
            self._put(known[0], "")
            self._free.append(known[0])

    def remove(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self._path.unlink(missing_ok=True)

    def _put(self, place: int, record: str) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end a call
            if self._file is None:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                self._file = os.open(self._path, flags, 0o600)
            os.pwrite(self._file, record.encode().ljust(_RECORD)[:_RECORD], place * _RECORD)


@dataclass(frozen=True)
class Ledgers:
    """The ledgers of this machine's workers, next to their work directories."""

    folder: Path

    @classmethod
    def beside(cls, work_dir: Path) -> Ledgers:
        return cls(work_dir.parent / _FOLDER)

    def new(self, name: str) -> Ledger:
        """The ledger of one ``Budgets`` of this process, by its name."""
        return Ledger(self.folder / f"{WorkerName.mine().folder}@{name}")

    async def settle_dead(self, store: BudgetStore, lease: timedelta, clock: Clock) -> int:
        """Counts what dead workers of this machine have spent; returns how many they are. Two processes may do it at
        once: the store takes a report once."""
        settled = 0
        for path in await asyncio.to_thread(self._of_dead):
            reports = await asyncio.to_thread(read_ledger, path)
            if reports:
                await store.exchange(reports, lease, clock())
            path.unlink(missing_ok=True)
            settled += 1
        return settled

    def _of_dead(self) -> list[Path]:
        with contextlib.suppress(OSError):
            return [path for path in self.folder.iterdir() if _is_dead(path)]
        return []


def read_ledger(path: Path) -> list[SliceReport]:
    """The last report of each holder. Calls that were under way count as expected, because they were sent."""
    with contextlib.suppress(OSError):
        if path.stat().st_mtime > time.time() - _OLDEST_SEC:
            return list(_reports(path.read_bytes()[:_LARGEST]))
    return []


def _reports(content: bytes) -> Iterator[SliceReport]:
    for place in range(0, len(content), _RECORD):
        with contextlib.suppress(ValueError, TypeError):
            holder, scope, job_id, rank, spent, under_way = json.loads(content[place : place + _RECORD])
            total = Amount(*spent) + Amount(*under_way)
            yield SliceReport(
                Scope(scope, job_id), holder, _LAST_REPORT, cap=NOTHING, spent=total, rank=rank, closes=True
            )


def _is_dead(path: Path) -> bool:
    """A ledger of another machine, or from before a reboot, counts as dead when it is old."""
    worker = WorkerName.of_folder(path.name.rpartition("@")[0])
    if worker is not None and worker.process.is_dead:
        return True
    with contextlib.suppress(OSError):
        return path.stat().st_mtime < time.time() - _OLDEST_SEC
    return False
