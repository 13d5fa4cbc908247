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
from seatrial.domain.job import Job, JobCounts, JobSpec, JobStatus
from seatrial.domain.output import NewOutput, Output
from seatrial.domain.result import Attempt, Result
from seatrial.domain.task import Dataset, Task, TaskRef
from seatrial.domain.token import NewToken, Token
from seatrial.domain.trial import Cause, Mark, NewTrial, Outcome, Phase, Trial, TrialState


class Page(Frozen):
    """Where a listing goes on: rows with an id below ``before`` (newest first), at most ``limit`` of them."""

    limit: int = 50
    before: int | None = None
    skip: int = 0
    """Rows left out first, for callers that count pages."""


class JobFilter(Frozen):
    status: JobStatus | None = None
    waits: bool | None = None
    """Whether all that is left to do of it is held (true), or something of it is queued or runs (false)."""
    graded: bool | None = None
    """Whether any of its trials ended with a grade."""
    origin: str | None = None
    name: str | None = None
    """A part of its name, in any case."""
    dataset: str | None = None
    task: str | None = None
    agent: str | None = None
    model: str | None = None


class TrialFilter(Frozen):
    job_id: int | None = None
    states: tuple[TrialState, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    causes: tuple[Cause, ...] = ()
    task: str | None = None
    """A task's name."""
    agent: str | None = None
    model: str | None = None


class Once(Frozen):
    """Makes a creation safe to repeat: the same key with the same request gives what was created first."""

    key: str
    fingerprint: str
    """Of the request; another request under the same key is a ``Conflict``."""


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


class JobTotals(Frozen):
    """What a job's trials came to, summed over their last results."""

    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    started_at: datetime | None = None
    """When its first trial was claimed; ``None`` before that."""


class Tally(Frozen):
    """Trials of one task of a job that stand alike; enough to work out a score without reading them one by one."""

    digest: str
    outcome: Outcome | None = None
    """``None``: not ended."""
    cause: Cause | None = None
    trials: int


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
    """What earlier trials of a task with an agent and a model took, on the average."""

    task: str
    agent: str
    model: str | None
    trials: int
    seconds: float
    cost_usd: float | None = None


class ProviderKey(Frozen):
    """A key of the installation. ``sealed`` means nothing without the installation's secret."""

    name: str
    sealed: str
    set_at: datetime


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
    starting: bool = False
    """It is there, and still loading what it runs trials with."""
    draining: bool = False
    paused: str = ""
    """Why it claims nothing at the moment, such as a full disk."""


class WorkerRow(Heartbeat):
    seen_at: datetime


class TaskStore(Protocol):
    async def save_task(self, task: Task, now: datetime) -> None:
        """Keeps a task; saving the same digest again changes nothing but its last use."""
        ...

    async def task(self, digest: str) -> Task: ...

    async def tasks(self, digests: Sequence[str]) -> list[Task]:
        """In the order asked for; ``NotFound`` names the first that is not there."""
        ...

    async def task_page(self, after: TaskRef | None, limit: int) -> list[Task]:
        """In order of name and digest, from behind ``after`` on."""
        ...

    async def find_tasks(self, name: str | None = None, limit: int = 1000) -> list[Task]:
        """By exact name, or all; newest first."""
        ...

    async def delete_task(self, digest: str) -> None:
        """Forgets a task; ``Conflict`` while a dataset or a job that has not ended needs it.

        Its archive in the blobs is the caller's to delete, after this."""
        ...

    async def save_dataset(self, dataset: Dataset, now: datetime) -> Dataset:
        """A name and version is written once; other content under the same id raises ``Conflict``."""
        ...

    async def dataset(self, name: str, version: str | None = None) -> Dataset:
        """Without a version: the one saved last."""
        ...

    async def datasets(self) -> list[Dataset]: ...


class JobStore(Protocol):
    async def create_job(
        self,
        spec: JobSpec,
        trials: Sequence[NewTrial],
        now: datetime,
        *,
        hold: bool = False,
        keys: str | None = None,
        once: Once | None = None,
    ) -> Job:
        """The job and all of its trials in one step; appends ``job.created``.

        ``hold`` leaves the trials to be released later. ``keys`` are its sealed provider keys, forgotten when it ends.
        With ``once``, a repetition gives the first job and changes nothing."""
        ...

    async def job(self, job_id: int) -> Job: ...

    async def jobs(self, page: Page, chosen: JobFilter | None = None) -> list[Job]:
        """One page, newest first."""
        ...

    async def count_jobs(self, chosen: JobFilter) -> int:
        """How many ``jobs`` would list in all."""
        ...

    async def counts(self, job_ids: Sequence[int]) -> dict[int, JobCounts]:
        """Every id has an entry; all zero where there is no such job."""
        ...

    async def totals(self, job_ids: Sequence[int]) -> dict[int, JobTotals]:
        """Every id has an entry."""
        ...

    async def tallies(self, job_ids: Sequence[int]) -> dict[int, list[Tally]]:
        """How often each task of a job ended in which way; every id has an entry."""
        ...

    async def save_job_keys(self, job_id: int, keys: str) -> None:
        """Sealed provider keys of a job that has not ended, in the place of earlier ones."""
        ...

    async def job_keys(self, job_id: int) -> str | None:
        """They are gone once the job ended."""
        ...

    async def release_trials(self, trial_ids: Sequence[int], now: datetime, *, limit_sec: float | None = None) -> int:
        """Queues held trials; others are left alone. Says how many. ``limit_sec`` is for each of them as a whole."""
        ...

    async def cancel_trials(self, trial_ids: Sequence[int], now: datetime) -> int:
        """``cancel_job`` for single trials of any jobs."""
        ...

    async def cancel_job(self, job_id: int, now: datetime) -> int:
        """Ends what is queued and asks what runs to stop; says how many trials that were."""
        ...

    async def retry_trials(self, trial_ids: Sequence[int], now: datetime, *, hold: bool = False) -> int:
        """Queues ended trials anew with their earlier attempts kept; others are left alone. Says how many.

        Their jobs are open again, and no longer cancelled. With ``hold`` they wait until they are released."""
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
        trials of that job are taken (``seatrial run`` works on its own job alone).

        A suspected trial is taken by a worker that holds nothing, alone, and nothing is taken beside it."""
        ...

    async def renew(self, worker: str, held: dict[int, int], lease: timedelta, now: datetime) -> RenewalReport:
        """Extends the leases of ``{trial id: attempt}``; tells which were lost and which should be cancelled.

        Unknown ids count as lost."""
        ...

    async def asked_to_stop(self, worker: str) -> frozenset[int]:
        """Trials of this worker that somebody cancelled. Cheaper than a renewal: workers ask often."""
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

    async def lose_worker(self, trial_id: int, attempt: int, result: Result, last: bool, now: datetime) -> Trial:
        """Records that the worker of the current attempt went silent, and queues the trial anew or ends it.

        An attempt that shared its worker with others does not count, and is never the last; see ``domain/isolation``.
        """
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

    async def last_event(self) -> int:
        """The number from which ``events`` goes on with what is yet to happen."""
        ...


class OutputStore(Protocol):
    """A bounded ring of live output for each running trial; what falls out is in the trial's files later."""

    async def append_output(self, pieces: Sequence[NewOutput], now: datetime) -> None:
        """Keeps the newest pieces of each trial; pieces of attempts that are over are dropped."""
        ...

    async def output(self, trial_ids: Sequence[int], after: int = 0, limit: int = 500) -> list[Output]:
        """In order of ``seq``, without gaps for whoever goes on from the last one seen, as ``events``."""
        ...

    async def drop_output(self, trial_ids: Sequence[int]) -> None: ...


class OverviewStore(Protocol):
    async def overview(self, origin: str | None = None) -> Overview:
        """Of everything, or of the jobs that came through one door."""
        ...

    async def backlog(self, now: datetime) -> Backlog: ...

    async def experience(self, tasks: Sequence[str]) -> list[Experience]:
        """Of the trials of these tasks, by name, that got a valid reward."""
        ...


class TokenStore(Protocol):
    async def save_token(self, token: NewToken, now: datetime) -> Token: ...

    async def token(self, fingerprint: str) -> Token | None:
        """Whatever its state; the caller looks whether it is valid."""
        ...

    async def tokens(self) -> list[Token]:
        """All of them, newest first."""
        ...

    async def revoke_token(self, token_id: int, now: datetime) -> Token: ...

    async def note_token_use(self, token_id: int, now: datetime) -> None: ...


class KeyStore(Protocol):
    async def save_provider_key(self, name: str, sealed: str, now: datetime) -> None: ...

    async def provider_keys(self) -> list[ProviderKey]: ...

    async def delete_provider_key(self, name: str) -> None: ...


class WorkerStore(Protocol):
    async def beat(self, heartbeat: Heartbeat, now: datetime) -> None: ...

    async def workers(self, seen_since: datetime | None = None) -> list[WorkerRow]: ...

    async def forget_worker(self, worker: str) -> None: ...


class Store(
    TaskStore,
    JobStore,
    TrialStore,
    EventStore,
    OutputStore,
    OverviewStore,
    TokenStore,
    KeyStore,
    WorkerStore,
    Protocol,
):
    """All of it; what ``wiring`` hands out. Used as ``async with``."""

    async def install_id(self) -> str:
        """Random, made with the store: tells this installation's sandboxes and files from another's."""
        ...

    async def __aenter__(self) -> Store: ...

    async def __aexit__(self, *exc: object) -> None: ...
