"""Finds out how a lost worker died, from its supervisor's note, the kernel's counters and the heartbeats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from seatrial.domain.fleet.worker_death import Death, Evidence, Exit, judge
from seatrial.engine.clock import Clock
from seatrial.ports.store import WorkerRow, WorkerStore
from seatrial.system.processes import WorkerName, is_dead


@dataclass(frozen=True)
class Witnesses:
    """Who on this machine can tell how a worker ended."""

    exit_of: Callable[[WorkerName], Exit | None] = lambda _: None
    """The supervisor's note."""
    is_dead: Callable[[str], bool] = is_dead
    """Whether the process of this name is certainly gone."""
    memory_kills: Callable[[], tuple[str, int | None]] = lambda: ("", None)
    """The cgroup of this process, and how many of its processes the kernel has killed for lack of memory."""


@dataclass(frozen=True)
class Autopsy:
    workers: WorkerStore
    clock: Clock
    witnesses: Witnesses = Witnesses()

    async def of(self, worker: str, *, patient: bool) -> Death | None:
        """How this worker died. ``None`` while its supervisor has not told yet, if we are ``patient``."""
        rows = await self.workers.all()
        mine = next((row for row in rows if row.worker == worker), None)
        name = WorkerName.parse(worker)
        if mine is None or name is None:
            return Death.UNKNOWN
        seen, gone = self.witnesses.exit_of(name), self._supervisor_gone(mine)
        if seen is None and mine.supervisor and not gone and name.process.is_on_this_machine and patient:
            return None
        evidence = Evidence(
            exit=seen,
            supervised=bool(mine.supervisor),
            supervisor_gone=gone,
            memory_kill=name.process.is_on_this_machine and self._was_memory(mine),
            host_silent=not name.process.is_on_this_machine and not _host_was_heard(name, mine, rows, self.clock()),
        )
        return judge(evidence)

    def _supervisor_gone(self, row: WorkerRow) -> bool:
        return bool(row.supervisor) and self.witnesses.is_dead(row.supervisor)

    def _was_memory(self, row: WorkerRow) -> bool:
        cgroup, kills = self.witnesses.memory_kills()
        return cgroup == row.cgroup != "" and (kills or 0) > (row.memory_kills or 0)


def _host_was_heard(name: WorkerName, dead: WorkerRow, rows: Sequence[WorkerRow], now: datetime) -> bool:
    """Whether another worker of the same boot of that machine beat in the second half of the silence. Workers that died
    with their machine had their last heartbeats at about the same time."""
    since = dead.seen_at + (now - dead.seen_at) / 2
    later = (row for row in rows if row.worker != dead.worker and row.seen_at > since)
    return any(other.process.boot == name.process.boot for row in later if (other := WorkerName.parse(row.worker)))
