"""The store is the truth. Small protocols in domain verbs; every implementation passes ``tests/contracts/store``.

Guarantees every implementation gives:

* A method either happened entirely or not at all, and survives a crash once it returned.
* ``claim`` hands a trial to exactly one caller, however many call at the same moment.
* Writes that carry an attempt number are refused with ``StaleAttempt`` once the trial was claimed again or ended.
* Times are aware (UTC) and come from the caller, so that a test can hold the clock.

All methods may raise ``StoreUnavailable``; ids that do not exist raise ``NotFound``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from seatrial.domain.event import Event, NewEvent
from seatrial.domain.frozen import Frozen
from seatrial.domain.job import Job, JobCounts, JobSpec
from seatrial.domain.result import Attempt, Result
from seatrial.domain.task import Dataset, Task
from seatrial.domain.trial import Mark, NewTrial, Outcome, Phase, Trial, TrialState


class Page(Frozen):
    """Where a listing goes on: rows with an id below ``before`` (newest first), at most ``limit`` of them."""

    limit: int = 50
    before: int | None = None


class TrialFilter(Frozen):
    job_id: int | None = None
    states: tuple[TrialState, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    task: str | None = None
    """A task's name."""


class TrialRow(Frozen):
    """A trial with the result of its last ended attempt."""

    trial: Trial
    result: Result | None = None


class TrialSummary(Frozen):
    """A trial with the numbers of its last result, for listings: cheap to read, whatever the result holds."""

    trial: Trial
    reward: float | None = None
    marks: tuple[Mark, ...] = ()
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


class Heartbeat(Frozen):
    """What a worker tells about itself, and the attempts it holds."""

    worker: str
    host: str
    pid: int
    capacity: int
    started_at: datetime
    agents: tuple[str, ...] = ()
    sandboxes: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    draining: bool = False


class WorkerRow(Heartbeat):
    seen_at: datetime


class TaskStore(Protocol):
    async def save_task(self, task: Task, now: datetime) -> None:
        """Keeps a task; saving the same digest again changes nothing but its last use."""
        ...

    async def task(self, digest: str) -> Task: ...

    async def find_tasks(self, name: str | None = None, limit: int = 1000) -> list[Task]:
        """By exact name, or all; newest first."""
        ...

    async def save_dataset(self, dataset: Dataset, now: datetime) -> Dataset:
        """A name and version is written once; other content under the same id raises ``Conflict``."""
        ...

    async def dataset(self, name: str, version: str | None = None) -> Dataset:
        """Without a version: the one saved last."""
        ...

    async def datasets(self) -> list[Dataset]: ...


class JobStore(Protocol):
    async def create_job(self, spec: JobSpec, trials: Sequence[NewTrial], now: datetime) -> Job:
        """The job and all of its trials in one step; appends ``job.created``."""
        ...

    async def job(self, job_id: int) -> Job: ...

    async def jobs(self, page: Page) -> list[Job]: ...

    async def counts(self, job_ids: Sequence[int]) -> dict[int, JobCounts]:
        """Every id has an entry; all zero where there is no such job."""
        ...

    async def cancel_job(self, job_id: int, now: datetime) -> int:
        """Ends what is queued and asks what runs to stop; says how many trials that were."""
        ...

    async def retry_trials(self, trial_ids: Sequence[int], now: datetime) -> int:
        """Queues ended trials anew with their earlier attempts kept; others are left alone. Says how many.

        Their jobs are open again, and no longer cancelled."""
        ...

    async def delete_job(self, job_id: int) -> None:
        """Forgets an ended job with its trials, attempts and events; ``Conflict`` while any of it is left to do.

        Files in the blobs are the caller's to delete, after this."""
        ...


class TrialStore(Protocol):
    async def claim(
        self, worker: str, lease: timedelta, limit: int, now: datetime, job_id: int | None = None
    ) -> list[Trial]:
        """Takes up to ``limit`` queued trials whose time has come, fairly over jobs and within each job's concurrency.

        Each has the state ``running`` and the next attempt number. Appends ``trial.claimed``. With ``job_id`` only
        trials of that job are taken (``seatrial run`` works on its own job alone)."""
        ...

    async def renew(self, worker: str, held: dict[int, int], lease: timedelta, now: datetime) -> RenewalReport:
        """Extends the leases of ``{trial id: attempt}``; tells which were lost and which should be cancelled.

        Unknown ids count as lost."""
        ...

    async def enter_phases(self, entries: Sequence[PhaseEntry]) -> None:
        """Notes the phases that trials entered, and appends ``trial.phase`` for each; stale entries are dropped.

        Takes many at once, because a worker with hundreds of trials collects them and writes a few times a second."""
        ...

    async def finish(self, trial_id: int, attempt: int, result: Result, now: datetime) -> Trial:
        """Records the result of the current attempt and ends the trial. Exactly once, else ``StaleAttempt``."""
        ...

    async def try_again(self, trial_id: int, attempt: int, result: Result, delay: timedelta, now: datetime) -> Trial:
        """Records the result of the current attempt and queues the trial anew (or ends it, if it was cancelled)."""
        ...

    async def give_back(self, trial_id: int, attempt: int, now: datetime) -> Trial:
        """Queues a claimed trial anew because its worker is leaving; the attempt does not count."""
        ...

    async def expired(self, now: datetime, limit: int = 100) -> list[Trial]:
        """Running trials whose lease ran out."""
        ...

    async def trial(self, trial_id: int) -> TrialRow: ...

    def trials(self, chosen: TrialFilter) -> AsyncIterator[TrialRow]:
        """In order of id, fetched in chunks so that memory stays flat."""
        ...

    async def summaries(self, chosen: TrialFilter, page: Page) -> list[TrialSummary]:
        """One page, newest first."""
        ...

    async def attempts(self, trial_id: int) -> list[Attempt]:
        """Every claim of the trial, first to last."""
        ...


class PhaseEntry(Frozen):
    trial_id: int
    job_id: int
    attempt: int
    phase: Phase
    at: datetime
    step: str | None = None


class RenewalReport(Frozen):
    lost: frozenset[int] = frozenset()
    cancel: frozenset[int] = frozenset()


class EventStore(Protocol):
    async def append(self, events: Sequence[NewEvent], now: datetime) -> None: ...

    async def events(
        self, after: int = 0, job_id: int | None = None, trial_id: int | None = None, limit: int = 500
    ) -> list[Event]:
        """In order of ``seq``. Whoever goes on from the last one it saw misses none: a lower number never appears
        after a higher one could be read."""
        ...


class WorkerStore(Protocol):
    async def beat(self, heartbeat: Heartbeat, now: datetime) -> None: ...

    async def workers(self, seen_since: datetime | None = None) -> list[WorkerRow]: ...

    async def forget_worker(self, worker: str) -> None: ...


class Store(TaskStore, JobStore, TrialStore, EventStore, WorkerStore, Protocol):
    """All of it; what ``wiring`` hands out. Used as ``async with``."""

    async def install_id(self) -> str:
        """Random, made with the store: tells this installation's sandboxes and files from another's."""
        ...

    async def __aenter__(self) -> Store: ...

    async def __aexit__(self, *exc: object) -> None: ...
