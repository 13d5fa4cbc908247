"""Which trial of a lost worker is to blame: trials that were lost in company more than once run alone from then on.

A worker holds many trials in one process, and a trial that kills the process takes all of them along. Whose fault it
was cannot be seen, so a loss in company counts against nobody. The first one may be anything (a reboot, an operator),
and everybody tries again together; after the second one each of them gets a worker to itself. A loss there names its
trial, and counts. So nobody is ended for what a neighbour did, and a trial has at most ``LOSSES_IN_COMPANY`` tries more
than its job allows.

Called by the stores: ``turn`` before a claim, ``transition`` when a worker was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum

from seatrial.domain.trial import LOSSES_IN_COMPANY, Trial, TrialState

PATIENCE = timedelta(minutes=10)
"""How long suspects wait for a worker that has nothing else to do, before workers take nothing else to make room."""

__all__ = ["LOSSES_IN_COMPANY", "PATIENCE", "Turn", "turn"]


class Turn(Enum):
    """What a worker that asks for trials may have."""

    NOTHING = "it has a suspect, which stays alone, or must empty itself for one"
    COMPANY = "as many as it likes, of those that nobody suspects"
    COMPANY_FIRST = "the same; and if there is none, one suspect"
    SUSPECT = "one suspect"


def turn(worker: str, holds: int, suspects: Sequence[Trial], now: datetime) -> Turn:
    """For a worker that holds so many trials; ``suspects`` are all that run or whose time has come."""
    if any(trial.state is TrialState.RUNNING and trial.worker == worker for trial in suspects):
        return Turn.NOTHING
    waiting = [trial for trial in suspects if trial.state is TrialState.QUEUED]
    overdue = any(trial.not_before is None or trial.not_before + PATIENCE <= now for trial in waiting)
    if holds:
        return Turn.NOTHING if overdue else Turn.COMPANY
    if overdue:
        return Turn.SUSPECT
    return Turn.COMPANY_FIRST if waiting else Turn.COMPANY
