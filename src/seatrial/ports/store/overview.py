"""Numbers about the whole installation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import JobCounts, JobStatus
from seatrial.domain.trial import Cause


class Overview(Frozen):
    """The whole installation in numbers."""

    jobs: dict[JobStatus, int] = {}
    trials: JobCounts = JobCounts()
    errors: dict[Cause, int] = {}


class Backlog(Frozen):
    """What waits and what runs, for ``/queue`` and the metrics."""

    queued: int = 0
    delayed: int = 0
    """Queued, but not before a later moment."""
    running: int = 0
    oldest_queued_at: datetime | None = None
    ended_last_minute: int = 0


class Experience(Frozen):
    """Average time and cost of earlier trials of a task with an agent and a model."""

    task: str
    agent: str
    model: str | None
    trials: int
    seconds: float
    cost_usd: float | None = None


class OverviewStore(Protocol):
    async def overview(self, origin: str | None = None) -> Overview:
        """All jobs, or only those created through one API."""

    async def backlog(self, now: datetime) -> Backlog: ...

    async def experience(self, tasks: Sequence[str]) -> list[Experience]:
        """Averages over the graded trials of these tasks."""
