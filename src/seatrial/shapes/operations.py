"""Who works, what waits, and the whole installation in numbers."""

from __future__ import annotations

from datetime import datetime

from seatrial.domain.job import JobStatus
from seatrial.domain.trial import Cause
from seatrial.shapes.page import Shape
from seatrial.shapes.trials import TrialCounts


class WorkerItem(Shape):
    worker: str
    host: str
    pid: int
    capacity: int
    running: int
    """Trials that it holds."""
    alive: bool
    """Whether it has been heard of within its lease."""
    draining: bool
    started_at: datetime
    seen_at: datetime
    versions: dict[str, str]


class WorkerList(Shape):
    items: list[WorkerItem]


class QueueState(Shape):
    queued: int
    delayed: int
    """Queued, but not before a later moment."""
    running: int
    capacity: int
    """Of the workers that live and take new trials."""
    backlog_per_worker: float | None
    """Queued trials for each of them; `null` without any."""
    oldest_queued_at: datetime | None
    ended_last_minute: int
    workers: list[WorkerItem]


class Stats(Shape):
    """The whole installation in numbers."""

    jobs: dict[JobStatus, int]
    trials: TrialCounts
    errors: dict[Cause, int]
