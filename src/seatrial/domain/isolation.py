"""Finds the trial that kills its workers: after repeated shared losses, trials run alone.

A worker runs many trials in one process, and a trial that kills the process takes the others down. The culprit is not
visible, so a shared loss counts against nobody. After the first one all trials try again together, since it may have
been a reboot. After the second one each of them runs alone in a worker. A loss there identifies the trial, and counts.
So no trial ends because of a neighbour, and a trial has at most ``LOSSES_IN_COMPANY`` more tries than its job allows.

Called by the stores: ``turn`` before a claim, ``transition`` when a worker was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum

from seatrial.domain.trial import LOSSES_IN_COMPANY, Trial, TrialState

PATIENCE = timedelta(minutes=10)
"""How long suspects wait for an idle worker, before busy workers stop claiming to make room."""

__all__ = ["LOSSES_IN_COMPANY", "PATIENCE", "Turn", "turn"]


class Turn(Enum):
    """What a worker may claim."""

    NOTHING = "it has a suspect, which stays alone, or must empty itself for one"
    COMPANY = "as many as it likes, of those that nobody suspects"
    COMPANY_FIRST = "the same; and if there is none, one suspect"
    SUSPECT = "one suspect"


def turn(worker: str, holds: int, suspects: Sequence[Trial], now: datetime) -> Turn:
    """For a worker that holds ``held`` trials. ``suspects``: all that run or are due."""
    if any(trial.state is TrialState.RUNNING and trial.worker == worker for trial in suspects):
        return Turn.NOTHING
    waiting = [trial for trial in suspects if trial.state is TrialState.QUEUED]
    overdue = any(trial.not_before is None or trial.not_before + PATIENCE <= now for trial in waiting)
    if holds:
        return Turn.NOTHING if overdue else Turn.COMPANY
    if overdue:
        return Turn.SUSPECT
    return Turn.COMPANY_FIRST if waiting else Turn.COMPANY
