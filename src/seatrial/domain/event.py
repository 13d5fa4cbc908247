"""Events of jobs and trials, appended in order and never changed. The page, the CLI and SSE clients follow them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from seatrial.domain.frozen import Frozen


class EventKind(StrEnum):
    JOB_CREATED = "job.created"
    JOB_CANCELLED = "job.cancelled"
    JOB_ENDED = "job.ended"
    JOB_TRIMMED = "job.trimmed"
    """Planned trials that had not started are not needed any more."""
    TRIAL_ADDED = "trial.added"
    """An attempt outside of the plan."""
    TRIAL_RELEASED = "trial.released"
    TRIAL_CLAIMED = "trial.claimed"
    TRIAL_PHASE = "trial.phase"
    TRIAL_STEP = "trial.step"
    TRIAL_CALLS = "trial.calls"
    """Model calls that have ended, and the sums over all calls of the try so far."""
    TRIAL_RETRY = "trial.retry"
    TRIAL_ENDED = "trial.ended"


class NewEvent(Frozen):
    kind: EventKind
    job_id: int
    trial_id: int | None = None
    attempt: int | None = None
    """The number of the try, under the name that the API gives it."""
    data: dict[str, Any] = {}


class Event(NewEvent):
    seq: int
    at: datetime
