"""Job requests and job answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints

from seatrial.domain.frozen import Frozen, common_values, trusted
from seatrial.domain.job import JobSpec, JobStatus
from seatrial.domain.numbers import LARGEST_ID
from seatrial.domain.reports.progress import Progress
from seatrial.domain.reports.score import ScoreLine
from seatrial.domain.trial import Outcome
from seatrial.engine.jobs.estimate import Estimate
from seatrial.engine.jobs.request import AgentParameters, JobParameters
from seatrial.engine.reports.listing import JobLine
from seatrial.engine.reports.reporting import configuration_labels
from seatrial.ports.store import JobTotals
from seatrial.shapes.answers import Listing, Plain, Shape
from seatrial.shapes.budgets import CapState, Spent
from seatrial.shapes.trials import TrialCounts

Word = Annotated[str, StringConstraints(min_length=1, max_length=400, pattern=r"^[^\x00]*$")]


class AgentRequest(AgentParameters):
    """One agent of a job, by name or import path; with its own model or with each model of the job."""

    name: Word
    model: Word | None = None
    env: dict[Plain, Annotated[str, StringConstraints(max_length=32_000, pattern=r"^[^\x00]*$")]] = {}


class JobRequest(JobParameters):
    """A new job: tasks × agents × models × attempts. Send provider keys as ``X-Provider-Key`` headers."""

    name: Plain = ""
    tasks: tuple[Word, ...] = Field(default=(), max_length=100_000)
    """By digest or name. Without tasks and dataset, the selection applies to the whole library."""
    dataset: Word | None = None
    agents: tuple[AgentRequest, ...] = Field(default=(), max_length=1000)
    models: tuple[Word, ...] = Field(default=(), max_length=1000)
    concurrency: int | None = Field(default=None, ge=1, le=1_000_000)
    sandbox: Word = "auto"
    labels: dict[Plain, Plain] = {}


class Totals(Shape):
    """Totals over every try of a job's trials, added attempts included."""

    seconds: float
    input_tokens: int
    output_tokens: int
    cost_usd: float | None

    @classmethod
    def of(cls, totals: JobTotals) -> Totals:
        return trusted(cls, common_values(cls, totals))


class JobItem(Shape):
    """A job in a list."""

    id: int
    name: str
    """The given name, or `job-<id>`."""
    pinned: bool
    status: JobStatus
    origin: str
    dataset: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    cancelled_at: datetime | None
    counts: TrialCounts
    """Of the planned trials."""
    added: TrialCounts | None
    """Of the attempts that were added after the plan; null if there are none. They are not part of the score."""
    totals: Totals
    agents: list[str]
    """Its configurations: agent, or agent / model, with the options that differ."""
    tasks: int
    attempts: int
    sandbox: str
    labels: dict[str, str]
    score: ScoreLine | None
    """Of a job with one configuration; null for several, which have no common score. Only if requested."""
    scores: list[ScoreLine] | None
    """One for each configuration, the best first. Only if requested."""

    @classmethod
    def of(cls, line: JobLine, **more: Any) -> Self:
        """``more``: further fields of a subclass."""
        job, spec, totals = line.job, line.job.spec, line.totals
        values = {
            **common_values(cls, spec),
            **common_values(cls, job),
            "name": job.title,
            "pinned": job.pinned_at is not None,
            "status": line.counts.status,
            "started_at": totals.started_at,
            "counts": TrialCounts.of(line.counts),
            "added": TrialCounts.of(line.counts.added) if line.counts.added.total else None,
            "totals": Totals.of(totals),
            "agents": list(configuration_labels(spec.agents)),
            "tasks": len(spec.tasks),
            "score": line.scores.only if line.scores else None,
            "scores": list(line.scores.items) if line.scores else None,
            **more,
        }
        return trusted(cls, values)


class JobDetail(JobItem):
    """A job with its specification, its pace and the time left."""

    spec: JobSpec
    progress: Progress
    obstacle: str = ""
    """Why some of its queued trials wait for a worker that is not there; empty if each has one."""
    spending: Spent = Spent()
    """What its trials have spent on models so far, calls under way included. `spec.budget` has the caps."""
    budgets: list[CapState] = []
    """The caps that hold for it, its own and that of the day, with what was spent of each. Empty once it has ended."""


class JobPage(Listing[JobItem]):
    """One page of jobs, newest first."""


class JobEstimate(Estimate):
    """Estimated cost and duration, and the equivalent command."""

    command: str
    """The ``seatrial run`` line."""
    curl: str
    unpriced: tuple[str, ...] = ()
    """Models without a known price. Their calls cannot be counted in dollars."""


class Cancelled(Shape):
    cancelled: int
    """Trials that were cancelled or asked to stop."""


class Queued(Shape):
    queued: int
    """Trials that were queued again."""


class Added(Shape):
    trials: list[int]
    """The new attempts."""


class RetryRequest(Frozen):
    """Which ended trials to run again. Earlier tries are kept."""

    outcomes: tuple[Outcome, ...] = (Outcome.ERROR, Outcome.CANCELLED)
    """``error`` and ``cancelled``; results of graded trials are final."""
    trials: tuple[Annotated[int, Field(ge=1, le=LARGEST_ID)], ...] | None = Field(default=None, max_length=100_000)
    """Only these trials. Default: all trials of the job."""


class AttemptsRequest(Frozen):
    """Which graded trials to run again, as further attempts outside of the plan."""

    outcomes: tuple[Outcome, ...] = (Outcome.PASSED, Outcome.FAILED)
    trials: tuple[Annotated[int, Field(ge=1, le=LARGEST_ID)], ...] | None = Field(default=None, max_length=100_000)
    """Only these trials. Default: all planned trials of the job."""
