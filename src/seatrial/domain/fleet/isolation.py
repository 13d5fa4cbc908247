"""Finds the trial that kills its workers, by bisection.

A worker runs many trials in one process, and a trial that kills the process ends the others too. Nothing shows which
trial it was. How the worker died decides what follows (``domain/fleet/worker_death.py``):

* Killed from outside, or lost with its supervisor or its machine: no trial is suspected. All are tried again. After
  ``OUTSIDE_LOSSES_ALLOWED`` such losses a trial is treated as after an unknown death, so that retries are bounded.
* A crash, or out of memory: every trial that the worker held is suspected.
* Unknown: they are suspected after the second loss.

Suspects run apart from all others, in *groups*: a group has one process to itself. The suspects of a lost worker are
two groups, the halves. If the process of a group dies, the trials that it held are halved again. A trial that ends is
cleared. A trial that is a group by itself and kills its process is found, and only that counts as a try. So no trial
ends because of another one, each group is at most half of the one before, and all tries are bounded.

Called by the stores: ``divide`` when a worker was lost, ``waiting`` to find the groups that may run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from seatrial.domain.frozen import Frozen
from seatrial.domain.trial import (
    SHARED_LOSSES_ALLOWED,
    SHARING,
    Trial,
    TrialState,
)

__all__ = ["SHARED_LOSSES_ALLOWED", "Suspects", "divide", "may_take", "waiting"]


class Suspects(Frozen):
    """A group of suspected trials that waits for a process of its own."""

    group: str
    size: int
    """How many of its trials may be claimed now."""


def divide(held: Sequence[Trial]) -> dict[int, str]:
    """The group of each trial that a lost worker held, should it be suspected now.

    A group is named after the first try in it, and a try is lost at most once, so no name comes twice."""
    ordered = sorted(held, key=lambda trial: trial.id)
    middle = (len(ordered) + 1) // 2
    return {trial.id: _name(half) for half in (ordered[:middle], ordered[middle:]) for trial in half}


def _name(half: Sequence[Trial]) -> str:
    first, *others = half
    return f"{first.id}.{first.try_number}" + (f"{SHARING}{len(others)}" if others else "")


def waiting(suspects: Iterable[Trial], now: datetime) -> list[Suspects]:
    """The groups of which something is due and nothing runs, in order of their first trial."""
    due: dict[str, int] = {}
    busy = set()
    for trial in suspects:
        if trial.group is None:
            continue
        if trial.state is TrialState.RUNNING:
            busy.add(trial.group)
        elif trial.is_due(now):
            due[trial.group] = due.get(trial.group, 0) + 1
    return [Suspects(group=group, size=size) for group, size in due.items() if group not in busy]


def may_take(worker: str, group: str, suspects: Iterable[Trial], now: datetime) -> list[Trial]:
    """The trials of the group that this worker may claim. A group is in one process only."""
    mine = [trial for trial in suspects if trial.group == group]
    if any(trial.state is TrialState.RUNNING and trial.worker != worker for trial in mine):
        return []
    return [trial for trial in mine if trial.is_due(now)]
