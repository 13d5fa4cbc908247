"""A job's numbers in lists: remembered once it ended, and the same score that its report has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.result import Result
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Outcome
from seatrial.engine.reports.listing import JobListing, score_lines
from seatrial.engine.reports.reporting import report_job
from seatrial.ports.store import JobNumbers, Tally
from seatrial.testing.memory_store import MemoryStore
from seatrial.testing.memory_store.jobs import MemoryJobs

NOW = datetime(2026, 5, 1, tzinfo=UTC)
OUTCOMES = (Outcome.PASSED, Outcome.FAILED, Outcome.PASSED, Outcome.ERROR, Outcome.PASSED, Outcome.FAILED)


class CountingJobs(MemoryJobs):
    """Says how often the trials themselves were asked."""

    sums = 0

    async def numbers(self, job_ids: Sequence[int]) -> dict[int, JobNumbers]:
        self.sums += 1
        return await super().numbers(job_ids)


async def a_job(store: MemoryStore) -> Job:
    refs = tuple(TaskRef(name=f"t{number}", digest=f"sha256:{number:064x}") for number in range(3))
    spec = JobSpec(tasks=refs, agents=(AgentSpec(name="oracle"),), attempts=2)
    return await store.jobs.create(spec, tuple(plan(spec)), NOW)


async def finish(store: MemoryStore, job: Job) -> None:
    claimed = await store.trials.claim("w", timedelta(minutes=1), 10, NOW, job_id=job.id)
    for trial, outcome in zip(claimed, OUTCOMES, strict=True):
        cause = Cause.SANDBOX if outcome is Outcome.ERROR else None
        await store.trials.finish(trial.id, trial.try_number, Result(outcome=outcome, cause=cause, seconds=2.0), NOW)


async def test_an_ended_job_is_counted_once_and_an_open_one_every_time() -> None:
    store = MemoryStore()
    store.jobs = jobs = CountingJobs(store.records)
    listing, job = JobListing(store.jobs), await a_job(store)
    for _ in range(3):
        assert (await listing.line(job)).counts.queued == 6
    assert jobs.sums == 3
    await finish(store, job)
    ended = await store.jobs.get(job.id)
    lines = [await listing.line(ended) for _ in range(3)]
    assert jobs.sums == 4
    assert lines[0] == lines[2]
    assert (lines[0].counts.passed, lines[0].totals.seconds) == (3, 12.0)


async def test_a_job_that_ended_after_it_was_read_has_its_end() -> None:
    store = MemoryStore()
    listing, read_before = JobListing(store.jobs), await a_job(store)
    await finish(store, read_before)
    line = await listing.line(read_before)
    assert (line.counts.ended, line.job.ended_at) == (6, NOW)


async def test_the_score_is_that_of_the_report() -> None:
    store = MemoryStore()
    job = await a_job(store)
    await finish(store, job)
    lines = (await JobListing(store.jobs).line(await store.jobs.get(job.id))).scores
    report = (await report_job(store.trials, job)).configurations[0]
    assert lines is not None and lines.items == (report.headline,) and lines.only == report.headline
    interval = report.valid.tasks_as_sample
    assert (lines.items[0].low, lines.items[0].high) == ((interval.low, interval.high) if interval else (None, None))
    assert (report.headline.leaderboard, report.headline.value) == (report.leaderboard.value, report.valid.value)
    assert report.headline.leaderboard == 0.5 and report.coverage == pytest.approx(5 / 6)


async def test_the_score_of_an_open_job_is_worked_out_anew_every_few_seconds() -> None:
    store, moment = MemoryStore(), [0.0]
    listing, job = JobListing(store.jobs, seconds=lambda: moment[0]), await a_job(store)
    (trial,) = await store.trials.claim("w", timedelta(minutes=1), 1, NOW, job_id=job.id)

    async def value() -> float | None:
        lines = (await listing.line(await store.jobs.get(job.id))).scores
        return lines.items[0].value if lines else None

    assert await value() is None
    await store.trials.finish(trial.id, trial.try_number, Result(outcome=Outcome.PASSED), NOW)
    assert await value() is None
    moment[0] = 3.0
    assert await value() == 1.0


def test_nothing_ended_has_no_score_and_one_task_no_interval() -> None:
    spec = JobSpec(tasks=(TaskRef(name="a", digest="a"),), agents=(AgentSpec(name="oracle"),), attempts=4)
    [waiting] = score_lines(spec, [Tally(digest="a", trials=4)]).items
    assert (waiting.value, waiting.coverage, waiting.no_interval) == (None, 0.0, "no task has a score")
    [one] = score_lines(spec, [Tally(digest="a", outcome=Outcome.PASSED, trials=3), Tally(digest="a", trials=1)]).items
    assert (one.value, one.low, one.high, one.no_interval) == (1.0, None, None, "one task says nothing about others")
    assert (one.coverage, one.so_far) == (0.75, True)
