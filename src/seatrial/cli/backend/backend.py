"""What commands ask for, whether the work is done here or by a service elsewhere: small protocols in domain verbs.

``session`` hands out one of the two: ``local`` over this machine's installation, ``remote`` over a client.
Commands parse, ask a backend and print; they do not know which one it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import Job, JobCounts, JobSpec
from seatrial.domain.task import Dataset, Task

if TYPE_CHECKING:
    from seatrial.cli.backend.request import RunRequest
    from seatrial.domain.comparison import Comparison
    from seatrial.domain.fact import Basis
    from seatrial.domain.report import JobReport
    from seatrial.domain.result import Attempt, StoredFile
    from seatrial.domain.trial import Outcome
    from seatrial.engine.jobs.estimate import Estimate
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

    @classmethod
    def of(cls, job: Job, counts: JobCounts) -> JobRow:
        return cls(id=job.id, name=job.title, counts=counts, created_at=job.created_at)


@dataclass(frozen=True)
class Plan:
    """What a run would do; ``estimate`` where somebody has experience to tell it from."""

    spec: JobSpec
    tasks: Sequence[Task]
    estimate: Estimate | None = None


class Runs(Protocol):
    """Starting jobs and seeing them through."""

    async def plan(self, request: RunRequest) -> Plan:
        """Checks everything; starts nothing."""
        ...

    async def submit(self, request: RunRequest) -> Job: ...

    async def resume(self, job: Job) -> int:
        """Queues what was cancelled or held; says how many. What is queued or runs already goes on by itself."""
        ...

    async def retry(self, job: Job, outcomes: Sequence[Outcome]) -> int:
        """Queues ended trials again; says how many."""
        ...

    async def see_through(self, job: Job, as_json: bool) -> int:
        """Until the job has ended or somebody interrupts; prints the outcome and returns the exit status."""
        ...

    def advice(self, job: Job) -> str:
        """What to do with a job that was only queued."""
        ...


class Jobs(Protocol):
    """Looking at jobs, and stopping them."""

    async def page(self, limit: int, before: int | None) -> list[JobRow]: ...

    async def get(self, job_id: int) -> tuple[Job, JobCounts]: ...

    async def rows(self, job_id: int) -> list[TrialRow]:
        """Every trial with its result, in the order in which they were planned."""
        ...

    async def cancel(self, job_id: int) -> int: ...

    async def report(self, job_id: int, tests: bool) -> tuple[Job, JobReport]: ...

    async def compare(self, sides: Sequence[str], basis: Basis, by_name: bool) -> Sequence[Comparison]: ...


class Trials(Protocol):
    """Looking at what one attempt left."""

    async def get(self, trial_id: int) -> tuple[TrialRow, Sequence[Attempt]]: ...

    async def files(self, trial_id: int, number: int | None) -> KeptFiles:
        """Of one try, or of the last that ended."""
        ...

    def read(self, kept: KeptFiles, file: StoredFile) -> AsyncIterator[bytes]: ...


class Tasks(Protocol):
    """The library."""

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
        """From a registry file in Harbor's format; without one named, from the configured one."""
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
