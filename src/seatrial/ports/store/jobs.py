"""The store of jobs: filters, pages, numbers and operations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from pydantic import Field

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import Job, JobCounts, JobSpec, JobStatus
from seatrial.domain.numbers import LARGEST_COUNT, LARGEST_ID
from seatrial.domain.reports.progress import WorkLeft
from seatrial.domain.trial import Cause, NewTrial, Outcome


class Page(Frozen):
    """One page of a listing, newest first: rows with an id below ``before``, at most ``limit`` of them."""

    limit: int = Field(default=50, ge=0, le=LARGEST_COUNT)
    before: int | None = Field(default=None, ge=0, le=LARGEST_ID)
    skip: int = Field(default=0, ge=0, le=LARGEST_COUNT)
    """Rows to skip first, for callers that count pages."""


class JobFilter(Frozen):
    status: JobStatus | None = None
    waits: bool | None = None
    """True: all unfinished trials of the job are held. False: at least one is queued or runs."""
    settling: bool | None = None
    """Whether the job is open and stops when it is settled."""
    origin: str | None = None
    name: str | None = None
    """A part of the job's name. Upper and lower case are the same."""
    pinned: bool | None = None
    dataset: str | None = None
    task: str | None = None
    agent: str | None = None
    model: str | None = None


class Once(Frozen):
    """Makes a creation safe to repeat. The same key with the same request returns the first job."""

    key: str
    fingerprint: str
    """Identifies the request. Another request with the same key raises ``Conflict``."""


class JobTotals(Frozen):
    """Sums over every try of every trial of a job, added attempts included."""

    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    started_at: datetime | None = None
    """When the first trial was claimed."""


class JobNumbers(Frozen):
    counts: JobCounts
    totals: JobTotals


class Tally(Frozen):
    """How many planned trials of a task and a configuration have the same outcome and cause. Enough for a score."""

    digest: str
    agent_index: int = 0
    """Index of the job's configuration."""
    outcome: Outcome | None = None
    """``None``: not ended."""
    cause: Cause | None = None
    trials: int


class SpentTally(Tally):
    """A tally with what its trials took together. Counts say how many trials reported it."""

    timed: int = 0
    seconds: float = 0.0
    """Of the last try."""
    metered: int = 0
    tokens: int = 0
    """Input and output of all tries."""
    priced: int = 0
    cost_usd: float = 0.0
    """Of all tries."""


class ConfigurationTotals(Frozen):
    """Sums over the planned trials of one configuration of a job. For lists over many jobs."""

    agent_index: int = 0
    """Index of the job's configuration."""
    cost_usd: float | None = None
    """Of every try of the trials that reported a cost."""
    priced: int = 0
    """Trials that reported a cost."""
    unlimited: int = 0
    """Ended trials that ran without the task's limits."""
    added: int = 0
    """Attempts that were added after the plan; in no other field."""


class JobStore(Protocol):
    async def create(
        self,
        spec: JobSpec,
        trials: Sequence[NewTrial],
        now: datetime,
        *,
        hold: bool = False,
        keys: str | None = None,
        once: Once | None = None,
    ) -> Job:
        """Creates the job and all of its trials. Appends ``job.created``.

        ``hold`` holds the trials until they are released. ``keys`` are sealed provider keys, deleted when the job ends.
        With ``once``, a repetition returns the first job and changes nothing."""

    async def get(self, job_id: int) -> Job: ...

    async def page(self, page: Page, chosen: JobFilter | None = None) -> list[Job]:
        """One page, newest first."""

    async def count(self, chosen: JobFilter) -> int:
        """The number of jobs that match the filter."""

    async def counts(self, job_ids: Sequence[int]) -> dict[int, JobCounts]:
        """Every id has an entry. An unknown job has zeros."""

    async def numbers(self, job_ids: Sequence[int]) -> dict[int, JobNumbers]:
        """Counts and totals, of one moment. Every id has an entry."""

    async def tallies(self, job_ids: Sequence[int]) -> dict[int, list[Tally]]:
        """How often each task and configuration of a job ended with each outcome, without added attempts. Every id has
        an entry."""
        ...

    async def spent_tallies(self, job_ids: Sequence[int]) -> dict[int, list[SpentTally]]:
        """The same with sums of time, tokens and cost."""
        ...

    async def configuration_totals(self, job_ids: Sequence[int]) -> dict[int, list[ConfigurationTotals]]:
        """One for each configuration that has trials, in order. Every id has an entry."""
        ...

    async def work_left(self, job_id: int, since: datetime) -> WorkLeft:
        """What runs and waits, how long such trials took, and how many ended after ``since``, of one moment."""
        ...

    async def save_sealed_keys(self, job_id: int, keys: str) -> None:
        """Replaces the sealed provider keys of a job that has not ended."""

    async def sealed_keys(self, job_id: int) -> str | None:
        """The sealed keys; ``None`` after the job has ended."""

    async def record_version(self, job_id: int, name: str, version: str) -> str:
        """What the job uses of something that has versions. The first record of a name counts, and it is returned.

        An empty ``version`` records nothing, and may be returned. Records are deleted with the job."""

    async def release_trials(self, trial_ids: Sequence[int], now: datetime, *, limit_sec: float | None = None) -> int:
        """Queues held trials and ignores others. Returns how many. ``limit_sec`` limits each whole trial."""

    async def cancel_trials(self, trial_ids: Sequence[int], now: datetime) -> int:
        """Like ``cancel``, for single trials of any jobs."""

    async def cancel(self, job_id: int, now: datetime) -> int:
        """Ends queued trials and asks running ones to stop. Returns how many."""

    async def drop_trials(self, job_id: int, trial_ids: Sequence[int], now: datetime) -> int:
        """Removes planned trials of a job that are held or queued and were never claimed. Ignores others, also ids that
        do not exist. Returns how many. Appends ``job.trimmed`` if there were any."""

    async def retry_trials(self, trial_ids: Sequence[int], now: datetime, *, hold: bool = False) -> int:
        """Queues ended trials without a grade again and keeps their earlier tries. Ignores other trials. Returns how
        many.

        Their jobs are open and not cancelled afterwards. With ``hold`` the trials wait until they are released."""

    async def add_attempts(self, trial_ids: Sequence[int], now: datetime, *, hold: bool = False) -> list[int]:
        """Adds an attempt outside of the plan for each of these graded trials; ignores others. Returns the new ids.

        Attempts of a task are numbered on. Appends ``trial.added``. Their jobs are open and not cancelled afterwards.
        With ``hold`` the attempts wait until they are released."""
        ...

    async def delete(self, job_id: int) -> None:
        """Deletes an ended job with its trials, tries and events. Raises ``Conflict`` if the job has not ended.

        The caller deletes the files in the blobs after this."""
