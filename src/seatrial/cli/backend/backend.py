"""Protocols for what commands do, the same for this machine and for a remote service.

``session`` returns an implementation: ``local`` uses this machine's installation, ``remote`` a client. Commands parse,
call the backend and print; they do not know which one it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import Job, JobCounts, JobSpec, JobStatus
from seatrial.domain.model_calls.budget import Amount
from seatrial.domain.reports.failures import Failures
from seatrial.domain.reports.score import ScoreLine
from seatrial.domain.task import Dataset, Task

if TYPE_CHECKING:
    from seatrial.cli.backend.request import RunRequest
    from seatrial.cli.backend.triage import TriageBackend
    from seatrial.domain.event import Event
    from seatrial.domain.output import Output
    from seatrial.domain.reports.leaderboard import Leaderboard
    from seatrial.domain.reports.pictures import Trend
    from seatrial.domain.reports.report import JobReport
    from seatrial.domain.result import StoredFile, Try
    from seatrial.domain.trial import Outcome
    from seatrial.engine.jobs.estimate import Estimate
    from seatrial.engine.reports.circumstances import ComparedCircumstances
    from seatrial.engine.reports.comparing import Compared, ComparisonWish
    from seatrial.engine.reports.leaderboard import LeaderboardFilter
    from seatrial.engine.trials.trial_files import KeptFiles
    from seatrial.ports.store import TrialRow
    from seatrial.ports.tasks import Inspection
    from seatrial.shapes.datasets import DatasetItem
    from seatrial.shapes.tasks import TaskItem


class JobRow(Frozen):
    """A job in a list."""

    id: int
    name: str
    counts: JobCounts
    created_at: datetime
    cancelled_at: datetime | None = None
    scores: tuple[ScoreLine, ...] = ()
    """One for each configuration, the best first."""

    @classmethod
    def of(cls, job: Job, counts: JobCounts, scores: tuple[ScoreLine, ...] = ()) -> JobRow:
        return cls(
            id=job.id,
            name=job.title,
            counts=counts,
            created_at=job.created_at,
            cancelled_at=job.cancelled_at,
            scores=scores,
        )

    @property
    def status(self) -> str:
        """A job that was cancelled says so, also if some of its trials had ended before."""
        stopped = self.cancelled_at is not None and self.counts.cancelled and self.counts.done
        return JobStatus.CANCELLED.value if stopped else self.counts.status.value


@dataclass(frozen=True)
class Plan:
    """What a run would do. ``estimate`` is present if earlier trials exist."""

    spec: JobSpec
    tasks: Sequence[Task]
    estimate: Estimate | None = None


class Runs(Protocol):
    """Starts and follows jobs."""

    async def plan(self, request: RunRequest) -> Plan:
        """Validates everything; starts nothing."""
        ...

    async def submit(self, request: RunRequest) -> Job: ...

    async def resume(self, job: Job) -> int:
        """Queues cancelled and held trials; returns how many. Queued and running trials are not touched."""
        ...

    async def retry(self, job: Job, outcomes: Sequence[Outcome]) -> int:
        """Queues ungraded trials again; returns how many."""
        ...

    async def add_attempts(self, job: Job, outcomes: Sequence[Outcome], trials: Sequence[int] | None) -> list[int]:
        """Runs graded trials again as further attempts outside of the plan; returns their numbers."""
        ...

    async def follow_to_end(self, job: Job, as_json: bool) -> int:
        """Follows the job until it ends or the user interrupts; prints the result and returns the exit status."""
        ...

    async def watch(self, job: Job, as_json: bool) -> int:
        """Follows a job that runs elsewhere until it ends or the user interrupts; prints the result and returns the
        exit status. Runs and stops nothing."""
        ...

    @property
    def program(self) -> str:
        """How the user calls this backend: ``seatrial``, or the same with ``--server``."""
        ...

    def advice(self, job: Job) -> str:
        """How to continue with a job that was only queued."""
        ...


class Jobs(Protocol):
    """Shows, stops and deletes jobs."""

    async def page(self, limit: int, before: int | None) -> list[JobRow]: ...

    async def get(self, job_id: int) -> tuple[Job, JobCounts]: ...

    async def spent(self, job_id: int) -> Amount:
        """What its trials have spent on models so far."""
        ...

    async def rows(self, job_id: int) -> list[TrialRow]:
        """Every trial with its result, in planned order."""
        ...

    async def cancel(self, job_id: int) -> int: ...

    async def delete(self, job_id: int) -> None:
        """Deletes an ended job with its trials and their files. Raises ``Conflict`` if it has not ended."""
        ...

    async def report(self, job_id: int, tests: bool) -> tuple[Job, JobReport]: ...

    async def failures(self, job_id: int) -> Failures:
        """Failed trials, grouped by what decided them."""
        ...

    async def trend(self, job_id: int) -> Trend:
        """Scores over the jobs of this job's dataset."""
        ...

    async def leaderboard(self, chosen: LeaderboardFilter) -> Leaderboard: ...

    async def compare(self, wish: ComparisonWish) -> Compared: ...

    async def circumstances(self, wish: ComparisonWish) -> ComparedCircumstances: ...


class Trials(Protocol):
    """Shows the results of one trial."""

    async def get(self, trial_id: int) -> tuple[TrialRow, Sequence[Try]]: ...

    async def files(self, trial_id: int, number: int | None) -> KeptFiles:
        """Files of one try, by default the last that ended."""
        ...

    def read(self, kept: KeptFiles, file: StoredFile) -> AsyncIterator[bytes]: ...

    def events(self, trial_id: int, follow: bool) -> AsyncIterator[Event | Output]:
        """What happened so far. With ``follow`` also live output, until the trial has ended."""
        ...


class Tasks(Protocol):
    """The task library."""

    async def inspect(self, path: Path) -> list[Inspection]: ...

    async def add(self, path: Path) -> list[Task]: ...

    async def all(self) -> list[TaskItem]: ...

    async def get(self, name: str) -> Task:
        """By digest or name."""
        ...


class Datasets(Protocol):
    async def all(self) -> list[DatasetItem]: ...

    async def get(self, name: str, version: str | None) -> Dataset: ...

    async def save(self, name: str, version: str, tasks: Sequence[Task], description: str) -> Dataset: ...

    async def take_in(self, name: str, version: str | None, registry: str | None) -> Dataset:
        """Imports from a Harbor registry file; by default the configured one."""
        ...


class Backend(Protocol):
    @property
    def runs(self) -> Runs: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def trials(self) -> Trials: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def datasets(self) -> Datasets: ...
    @property
    def triage(self) -> TriageBackend: ...
