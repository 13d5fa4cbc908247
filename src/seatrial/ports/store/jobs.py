"""Jobs: which are meant, what their trials came to, and what can be done with them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import Job, JobCounts, JobSpec, JobStatus
from seatrial.domain.trial import Cause, NewTrial, Outcome
from seatrial.ports.store.page import Page


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


class Once(Frozen):
    """Makes a creation safe to repeat: the same key with the same request gives what was created first."""

    key: str
    fingerprint: str
    """Of the request; another request under the same key is a ``Conflict``."""


class JobTotals(Frozen):
    """What a job's trials came to, summed over their last results."""

    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    started_at: datetime | None = None
    """When its first trial was claimed; ``None`` before that."""


class JobNumbers(Frozen):
    counts: JobCounts
    totals: JobTotals


class Tally(Frozen):
    """Trials of one task of a job that stand alike; enough to work out a score without reading them one by one."""

    digest: str
    outcome: Outcome | None = None
    """``None``: not ended."""
    cause: Cause | None = None
    trials: int


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

    async def numbers(self, job_ids: Sequence[int]) -> dict[int, JobNumbers]:
        """Counts and totals, of one moment. Every id has an entry."""
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
