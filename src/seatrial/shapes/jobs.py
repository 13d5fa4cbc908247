"""What is sent to start a job, and what is answered about one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints

from seatrial.domain.frozen import Frozen, trusted
from seatrial.domain.job import JobSpec, JobStatus
from seatrial.domain.numbers import LARGEST_ID
from seatrial.domain.trial import Outcome
from seatrial.engine.jobs.estimate import Estimate
from seatrial.engine.jobs.request import AgentWish, JobWish
from seatrial.engine.reports.listing import JobLine, ScoreLine
from seatrial.engine.reports.reporting import configuration_labels
from seatrial.ports.store import JobTotals
from seatrial.shapes.page import Listing, Plain, Shape
from seatrial.shapes.trials import TrialCounts

Word = Annotated[str, StringConstraints(min_length=1, max_length=400, pattern=r"^[^\x00]*$")]


class AgentRequest(AgentWish):
    """One agent of a job, by name or import path; with a model of its own or with each of the job's."""

    name: Word
    model: Word | None = None
    env: dict[Plain, Annotated[str, StringConstraints(max_length=32_000, pattern=r"^[^\x00]*$")]] = {}


class JobRequest(JobWish):
    """A new job: tasks × agents × models × attempts. Provider keys come beside it, in ``X-Provider-Key`` headers."""

    name: Plain = ""
    tasks: tuple[Word, ...] = Field(default=(), max_length=100_000)
    """By digest or name. Without tasks and a dataset, the selection takes from the whole library."""
    dataset: Word | None = None
    agents: tuple[AgentRequest, ...] = Field(default=(), max_length=1000)
    models: tuple[Word, ...] = Field(default=(), max_length=1000)
    concurrency: int | None = Field(default=None, ge=1, le=1_000_000)
    sandbox: Word = "auto"
    labels: dict[Plain, Plain] = {}


class Totals(Shape):
    """What a job's trials came to, summed over their last results."""

    seconds: float
    input_tokens: int
    output_tokens: int
    cost_usd: float | None

    @classmethod
    def of(cls, totals: JobTotals) -> Totals:
        values = {
            "seconds": totals.seconds,
            "input_tokens": totals.input_tokens,
            "output_tokens": totals.output_tokens,
            "cost_usd": totals.cost_usd,
        }
        return trusted(cls, values)


class JobItem(Shape):
    """A job in a list."""

    id: int
    name: str
    """As it was given, or `job-<id>`."""
    status: JobStatus
    origin: str
    dataset: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    cancelled_at: datetime | None
    counts: TrialCounts
    totals: Totals
    agents: list[str]
    """Its configurations: agent, or agent / model, with the options in which they differ."""
    tasks: int
    attempts: int
    sandbox: str
    labels: dict[str, str]
    score: ScoreLine | None
    """Where it was asked for."""

    @classmethod
    def of(cls, line: JobLine, **more: Any) -> Self:
        """``more`` are the fields that a larger shape has besides."""
        job, spec, totals = line.job, line.job.spec, line.totals
        values = {
            "id": job.id,
            "name": job.title,
            "status": line.counts.status,
            "origin": spec.origin,
            "dataset": spec.dataset,
            "created_at": job.created_at,
            "started_at": totals.started_at,
            "ended_at": job.ended_at,
            "cancelled_at": job.cancelled_at,
            "counts": TrialCounts.of(line.counts),
            "totals": Totals.of(totals),
            "agents": list(configuration_labels(spec.agents)),
            "tasks": len(spec.tasks),
            "attempts": spec.attempts,
            "sandbox": spec.sandbox,
            "labels": spec.labels,
            "score": line.score,
            **more,
        }
        return trusted(cls, values)


class JobDetail(JobItem):
    """A job with everything that decides what it runs."""

    spec: JobSpec


class JobPage(Listing[JobItem]):
    """One page of jobs, newest first."""


class JobEstimate(Estimate):
    """What a job would take, and how to start the same from a terminal."""

    command: str
    """The ``seatrial run`` line."""
    curl: str


class Cancelled(Shape):
    cancelled: int
    """Trials that were cancelled or told to stop."""


class Queued(Shape):
    queued: int
    """Trials that were queued again."""


class RetryRequest(Frozen):
    """Which ended trials to run again; earlier tries are kept."""

    outcomes: tuple[Outcome, ...] = (Outcome.ERROR, Outcome.CANCELLED)
    trials: tuple[Annotated[int, Field(ge=1, le=LARGEST_ID)], ...] | None = Field(default=None, max_length=100_000)
    """Only these of the job; all of it without."""
