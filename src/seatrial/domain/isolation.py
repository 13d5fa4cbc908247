"""Finds the trial that kills its workers: after repeated shared losses, trials run alone.

A worker runs many trials in one process, and a trial that kills the process ends the others too. Nothing shows which
trial it was, so a shared loss counts for none of them. After the first one all trials are tried again together, because
it may have been a reboot. After the second one each of them runs alone in a worker. A loss there identifies the trial,
and counts. So no trial ends because of another one, and a trial has at most ``SHARED_LOSSES_ALLOWED`` more tries than
its job allows.

Called by the stores: ``may_claim`` before a claim, ``transition`` when a worker was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum

from seatrial.domain.trial import SHARED_LOSSES_ALLOWED, Trial, TrialState

LONGEST_WAIT = timedelta(minutes=10)
"""How long suspects wait for an idle worker, before busy workers stop claiming to make room."""

__all__ = ["LONGEST_WAIT", "SHARED_LOSSES_ALLOWED", "MayClaim", "may_claim"]


class MayClaim(Enum):
    """What a worker may claim."""

    NOTHING = "it runs a suspected trial, which must stay alone, or has to become idle for one"
    UNSUSPECTED = "any number of trials that are not suspected"
    UNSUSPECTED_FIRST = "the same, or one suspected trial if there are no others"
    SUSPECT = "one suspected trial"


def may_claim(worker: str, holds: int, suspects: Sequence[Trial], now: datetime) -> MayClaim:
    """For a worker with ``holds`` trials. ``suspects``: all suspected trials that run or are due."""
    if any(trial.state is TrialState.RUNNING and trial.worker == worker for trial in suspects):
        return MayClaim.NOTHING
    waiting = [trial for trial in suspects if trial.state is TrialState.QUEUED]
    overdue = any(trial.not_before is None or trial.not_before + LONGEST_WAIT <= now for trial in waiting)
    if holds:
        return MayClaim.NOTHING if overdue else MayClaim.UNSUSPECTED
    if overdue:
        return MayClaim.SUSPECT
    return MayClaim.UNSUSPECTED_FIRST if waiting else MayClaim.UNSUSPECTED
