"""Open work in machine-sized units: the one number that every autoscaler follows.

A trial asks for what its task declares, else for the installation's defaults. A machine takes as much as workers pack
onto it (``packing.Overcommit``). Whichever of memory and processors is scarcer counts. Queued and running trials count
alike: a signal of the queue alone would fall as soon as trials are claimed, and an autoscaler would then remove the
machines that run them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from pydantic import Field

from seatrial.domain.fleet.packing import MEMORY_SHARE, Overcommit
from seatrial.domain.frozen import Frozen
from seatrial.domain.task import Resources

_USUAL = Overcommit()


class MachineSize(Frozen):
    """Memory and processors: of a machine, or what a trial gets if its task declares none."""

    memory_mb: float = Field(gt=0)
    cpus: float = Field(gt=0)


class OpenWork(Frozen):
    """Queued and running trials of one job at one task."""

    job_id: int
    task_digest: str
    trials: int
    concurrency: int | None = None
    """Maximum running trials of the whole job."""


class Wanted(Frozen):
    """Open work with what each of its trials asks for."""

    work: OpenWork
    asks: Resources = Resources()


def work_units(
    wanted: Iterable[Wanted], machine: MachineSize, default: MachineSize, overcommit: Overcommit = _USUAL
) -> float:
    """How many machines of this size the open work fills.

    A job with a concurrency counts with at most that many of its trials, the average ones: more machines would not
    make it faster."""
    wanted = list(wanted)
    open_trials: dict[int, int] = {}
    for each in wanted:
        open_trials[each.work.job_id] = open_trials.get(each.work.job_id, 0) + each.work.trials
    memory = cpus = 0.0
    for each in wanted:
        work = each.work
        share = 1.0 if work.concurrency is None else min(work.concurrency / open_trials[work.job_id], 1.0)
        memory += share * work.trials * (each.asks.memory_mb or default.memory_mb)
        cpus += share * work.trials * (each.asks.cpus or default.cpus)
    room_mb, room_cpus = MEMORY_SHARE * overcommit.memory * machine.memory_mb, overcommit.cpus * machine.cpus
    return max(memory / room_mb, cpus / room_cpus)


def machines_for(units: float) -> int:
    """The desired number of machines. Rounding errors of a sum do not ask for another one."""
    return math.ceil(round(units, 6))
