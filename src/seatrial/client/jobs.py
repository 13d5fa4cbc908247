"""Job methods. Each function describes a request; ``Jobs`` turns them into methods."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from seatrial.client.ask import Ask, Following, Paged, given, nothing, place, provider_keys, reads
from seatrial.client.comparisons import compare_jobs, read_circumstances, read_comparison, read_pairs
from seatrial.client.driver import Driver, Plan
from seatrial.client.verbs import Group, list_verb, verb
from seatrial.domain.event import EventKind
from seatrial.domain.job import JobStatus
from seatrial.domain.reports.failures import Failures
from seatrial.domain.reports.leaderboard import Leaderboard
from seatrial.domain.reports.pictures import Trend
from seatrial.domain.reports.report import JobReport
from seatrial.domain.trial import Outcome
from seatrial.engine.reports.grid import Grid
from seatrial.errors import StoreUnavailable
from seatrial.shapes.jobs import (
    Added,
    AttemptsRequest,
    Cancelled,
    JobDetail,
    JobEstimate,
    JobItem,
    JobPage,
    JobRequest,
    Queued,
    RetryRequest,
)

_FIRST_PAUSE_SEC, _LONGEST_PAUSE_SEC = 0.1, 2.0
_PATIENCE_SEC = 60.0
"""How long ``wait`` tolerates a service that does not answer."""

type Keys = Mapping[str, str]


def create_job(wanted: JobRequest, *, keys: Keys | None = None, idempotency_key: str | None = None) -> Ask[JobItem]:
    """Queues tasks × agents × models × attempts. ``keys`` are provider keys by environment name; the service encrypts
    them and deletes them when the job ends. A lost answer never creates a second job."""
    headers = (("Idempotency-Key", idempotency_key or uuid.uuid4().hex), *provider_keys(keys))
    return Ask("POST", "/jobs", reads(JobItem), body=wanted, headers=headers, repeatable=True)


def check_job(wanted: JobRequest, *, keys: Keys | None = None) -> Ask[None]:
    """Checks all of a request except its tasks, before they are uploaded."""
    return Ask("POST", "/jobs/check", nothing, body=wanted, headers=provider_keys(keys), repeatable=True)


def estimate_job(wanted: JobRequest, *, keys: Keys | None = None) -> Ask[JobEstimate]:
    """Estimates cost and duration from earlier trials; starts nothing."""
    headers = provider_keys(keys)
    return Ask("POST", "/jobs/estimate", reads(JobEstimate), body=wanted, headers=headers, repeatable=True)


def list_jobs(
    *,
    status: JobStatus | None = None,
    name: str | None = None,
    dataset: str | None = None,
    task: str | None = None,
    agent: str | None = None,
    model: str | None = None,
    origin: str | None = None,
    with_score: bool = False,
    before: int | None = None,
    page_size: int = 100,
) -> Paged[JobItem]:
    """Jobs with their counts, newest first. ``before``: only jobs with a smaller id."""
    params = given(
        status=status,
        name=name,
        dataset=dataset,
        task=task,
        agent=agent,
        model=model,
        origin=origin,
        include="score" if with_score else None,
        cursor=None if before is None else str(before),
        limit=page_size,
    )
    return Paged(Ask("GET", "/jobs", reads(JobPage), params))


def get_job(job_id: int) -> Ask[JobDetail]:
    """One job: its counts, its score so far, and its specification."""
    return Ask("GET", place("jobs", job_id), reads(JobDetail))


def cancel_job(job_id: int) -> Ask[int]:
    """Cancels a job. Queued trials end now, running ones within seconds. Returns the number of trials."""
    path = place("jobs", job_id, "cancel")
    return Ask("POST", path, lambda answer: reads(Cancelled)(answer).cancelled, repeatable=True)


def resume_job(job_id: int, *, keys: Keys | None = None) -> Ask[int]:
    """Queues trials that were cancelled or never ran. Returns their number."""
    path = place("jobs", job_id, "resume")
    return Ask("POST", path, lambda answer: reads(Queued)(answer).queued, headers=provider_keys(keys))


def retry_job(
    job_id: int,
    *,
    outcomes: Sequence[Outcome] = (Outcome.ERROR, Outcome.CANCELLED),
    trials: Sequence[int] | None = None,
    keys: Keys | None = None,
) -> Ask[int]:
    """Runs trials again that ended in errors or were cancelled; earlier tries are kept. Returns the number queued."""
    wanted = RetryRequest(outcomes=tuple(outcomes), trials=None if trials is None else tuple(trials))
    path = place("jobs", job_id, "retry")
    return Ask("POST", path, lambda answer: reads(Queued)(answer).queued, body=wanted, headers=provider_keys(keys))


def add_attempts(
    job_id: int,
    *,
    outcomes: Sequence[Outcome] = (Outcome.PASSED, Outcome.FAILED),
    trials: Sequence[int] | None = None,
    keys: Keys | None = None,
) -> Ask[list[int]]:
    """Runs graded trials again as further attempts, which are not part of the score. Returns their ids."""
    wanted = AttemptsRequest(outcomes=tuple(outcomes), trials=None if trials is None else tuple(trials))
    path = place("jobs", job_id, "attempts")
    return Ask("POST", path, lambda answer: reads(Added)(answer).trials, body=wanted, headers=provider_keys(keys))


def delete_job(job_id: int) -> Ask[None]:
    """Deletes an ended job with all its files. Raises ``Conflict`` while the job has not ended."""
    return Ask("DELETE", place("jobs", job_id), nothing)


def report_job(job_id: int, *, tests: bool = False) -> Ask[JobReport]:
    """Scores with their uncertainty, errors by cause, costs and durations."""
    return Ask("GET", place("jobs", job_id, "report"), reads(JobReport), given(tests=tests or None))


def failures_of_job(job_id: int) -> Ask[Failures]:
    """Failed trials, grouped by what decided them."""
    return Ask("GET", place("jobs", job_id, "failures"), reads(Failures))


def trend_of_job(job_id: int) -> Ask[Trend]:
    """Scores over the jobs of this job's dataset that ran the same tasks, oldest first."""
    return Ask("GET", place("jobs", job_id, "trend"), reads(Trend))


def grid_of_job(job_id: int) -> Ask[Grid]:
    """All trials, arranged by task and configuration."""
    return Ask("GET", place("jobs", job_id, "grid"), reads(Grid))


def download_table(job_id: int, into: Path) -> Ask[Path]:
    """All trials as CSV."""
    return Ask("GET", f"/jobs/{job_id}/trials.csv", lambda answer: into, into=into)


def leaderboard(
    *, dataset: str | None = None, agent: str | None = None, model: str | None = None, since: datetime | None = None
) -> Ask[Leaderboard]:
    """Every configuration on every set of tasks that it ran. ``since``: only jobs created then or later."""
    params = given(dataset=dataset, agent=agent, model=model, since=since.isoformat() if since else None)
    return Ask("GET", "/leaderboard", reads(Leaderboard), params)


def wait_for_job(job_id: int, timeout: float | None = None) -> Plan[JobDetail]:
    """Waits until the job has ended. Raises ``TimeoutError`` after ``timeout`` seconds; the job continues.

    Listens to events, and polls in case they do not arrive.
    """

    async def wait(driver: Driver) -> JobDetail:
        began = heard = time.monotonic()
        pause = _FIRST_PAUSE_SEC
        end = Following(place("jobs", job_id, "events"), given(kinds=EventKind.JOB_ENDED))
        while True:
            try:
                job = await driver.ask(get_job(job_id))
                heard = time.monotonic()
                if job.ended_at is not None:
                    return job
            except StoreUnavailable:
                if time.monotonic() - heard > _PATIENCE_SEC:
                    raise
            left = None if timeout is None else timeout - (time.monotonic() - began)
            if left is not None and left <= 0:
                raise TimeoutError(f"Job {job_id} has not ended within {timeout:g} s. It continues.")
            if not await driver.listen(end, left):
                await driver.io.sleep(pause if left is None else min(pause, left))
                pause = min(2 * pause, _LONGEST_PAUSE_SEC)

    return wait


class Jobs[Driver](Group[Driver]):
    """``client.jobs``"""

    create = verb(create_job)
    check = verb(check_job)
    estimate = verb(estimate_job)
    list = list_verb(list_jobs)
    get = verb(get_job)
    cancel = verb(cancel_job)
    resume = verb(resume_job)
    retry = verb(retry_job)
    add_attempts = verb(add_attempts)
    delete = verb(delete_job)
    report = verb(report_job)
    failures = verb(failures_of_job)
    trend = verb(trend_of_job)
    grid = verb(grid_of_job)
    table = verb(download_table)
    compare = verb(compare_jobs)
    comparison = verb(read_comparison)
    circumstances = verb(read_circumstances)
    pairs = verb(read_pairs)
    leaderboard = verb(leaderboard)
    wait = verb(wait_for_job)
