"""What autoscalers follow: the open work in machine-sized units, the age of the oldest queued trial, live workers.

``/metrics``, ``/api/v1/fleet``, ``seatrial fleet`` and CloudWatch show the same numbers. They are kept for a few
seconds, and longer if the store needs long to count, so that scrapes cost next to nothing with any number of trials.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence

from seatrial.domain.fleet.packing import Overcommit
from seatrial.domain.fleet.work_units import MachineSize, OpenWork, Wanted, machines_for, work_units
from seatrial.domain.frozen import Frozen
from seatrial.domain.task import Resources
from seatrial.engine.clock import Clock
from seatrial.engine.recent import RecentlyUsed
from seatrial.errors import NotFound
from seatrial.ports.store import Backlog, Store, WorkerRow

_COUNTS_FOR_SEC = 2.0
_SHARE = 0.05
"""The part of the time that counting may take."""
_TASKS_REMEMBERED = 20_000


class Signals(Frozen):
    """The numbers, at one moment."""

    work_units: float
    """Queued and running trials, in machines."""
    desired_workers: int
    """Machines for these units, rounded up."""
    workers: int
    """Live workers that claim trials."""
    backlog: Backlog
    queue_oldest_seconds: float
    """Age of the oldest queued trial, since it was created; 0 without queued trials."""
    machine: MachineSize
    """The machine in which work is counted."""


class MachineUnit(Frozen):
    """The size of machine in which work is counted."""

    machine: MachineSize | None = None
    """``None``: what live workers report, or else this machine."""
    default: MachineSize
    """What a trial gets whose task declares nothing."""
    overcommit: Overcommit = Overcommit()


class FleetSignals:
    """Counts once for all who ask. One per process."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        unit: MachineUnit,
        live_workers: Callable[[], Awaitable[Sequence[WorkerRow]]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._unit = unit
        self._live_workers = live_workers
        self._asks: RecentlyUsed[Resources] = RecentlyUsed(_TASKS_REMEMBERED)
        self._lock = asyncio.Lock()
        self._found: Signals | None = None
        self._stale_at = float("-inf")

    async def look(self) -> Signals:
        """Raises ``StoreUnavailable``."""
        loop = asyncio.get_running_loop()
        async with self._lock:
            began = loop.time()
            if self._found is None or began >= self._stale_at:
                self._found = await self._count()
                took = loop.time() - began
                self._stale_at = loop.time() + max(_COUNTS_FOR_SEC, took / _SHARE)
            return self._found

    async def _count(self) -> Signals:
        now = self._clock()
        backlog = await self._store.totals.backlog(now)
        work = await self._store.totals.open_work() if backlog.queued or backlog.running else []
        workers = await self._live_workers()
        machine = self._unit.machine or _machine_of(workers)
        units = work_units(await self._wanted(work), machine, self._unit.default, self._unit.overcommit)
        oldest = backlog.oldest_queued_at
        return Signals(
            work_units=round(units, 3),
            desired_workers=machines_for(units),
            workers=sum(worker.works for worker in workers),
            backlog=backlog,
            queue_oldest_seconds=max((now - oldest).total_seconds(), 0.0) if oldest else 0.0,
            machine=machine,
        )

    async def _wanted(self, work: Sequence[OpenWork]) -> list[Wanted]:
        for digest in {each.task_digest for each in work}:
            if self._asks.get(digest) is None:
                self._asks.put(digest, await self._asked(digest))
        return [Wanted(work=each, asks=self._asks.get(each.task_digest) or Resources()) for each in work]

    async def _asked(self, digest: str) -> Resources:
        try:
            return (await self._store.tasks.get(digest)).resources
        except NotFound:  # its job was deleted meanwhile, and the task with it
            return Resources()


def _machine_of(workers: Sequence[WorkerRow]) -> MachineSize:
    """The smallest machine that a live worker reports: too many machines are better than too few."""
    reported = [worker.machine for worker in workers if worker.machine is not None]
    if not reported:
        return this_machine()
    return MachineSize(
        memory_mb=min(machine.memory_mb for machine in reported), cpus=min(machine.cpus for machine in reported)
    )


def this_machine() -> MachineSize:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return MachineSize(memory_mb=memory >> 20, cpus=os.cpu_count() or 1)
