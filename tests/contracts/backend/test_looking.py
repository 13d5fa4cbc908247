"""Looking at jobs and trials gives the same on this machine and at a service, in few questions."""

from __future__ import annotations

from collections import Counter

import pytest

from seatrial.domain.result import Result
from seatrial.domain.trial import Cause, Outcome
from seatrial.engine.reports.comparing import ComparisonWish
from seatrial.errors import InvalidInput, NotFound
from seatrial.ports.store import TrialFilter
from seatrial.testing.fake_runner import FAIL, PASS, FakeRunner
from tests.contracts.backend.place import Place

BROKEN = Result(outcome=Outcome.ERROR, cause=Cause.VERIFIER, message="The tests did not start.")
FILES = {"agent/log.txt": b"what the agent said\n", "verifier/test-stdout.txt": b"ok\n"}


async def test_rows_are_all_trials_with_their_results_in_the_order_of_the_plan(place: Place) -> None:
    job = await place.submit("a", "b", "c", attempts=20)
    await place.work_off(job, FakeRunner(results={"b": (FAIL,), "c": (BROKEN,)}))
    asked_before = len(place.requests)
    rows = await place.backend.jobs.rows(job.id)
    assert len(place.requests) - asked_before <= 1
    stored = [row async for row in place.here.store.trials.each(TrialFilter(job_id=job.id))]
    assert [(row.trial.id, row.trial.task, row.trial.outcome, row.result) for row in rows] == [
        (row.trial.id, row.trial.task, row.trial.outcome, row.result) for row in stored
    ]
    assert len(rows) == 60 and rows[2].result is not None and rows[2].result.message == BROKEN.message


async def test_tables_and_reports_take_as_many_requests_whatever_the_number_of_trials(place: Place) -> None:
    small, large = await place.submit("a"), await place.submit("b", "c", attempts=15)
    for job in (small, large):
        await place.work_off(job)
    asked, watched = [], []
    for job in (small, large):
        before = len(place.requests)
        await place.backend.jobs.get(job.id)
        await place.backend.jobs.rows(job.id)
        await place.backend.jobs.report(job.id, tests=True)
        await place.backend.jobs.failures(job.id)
        asked.append(len(place.requests) - before)
        before = len(place.requests)
        await place.backend.runs.watch(job, as_json=True)
        # It looks at the job itself every second, until it has heard that the job has ended.
        paths = [path for path in place.requests[before:] if path != f"/api/v1/jobs/{job.id}"]
        watched.append(Counter(path.replace(f"/{job.id}", "/n") for path in paths))
    assert asked[0] == asked[1] and watched[0] == watched[1]
    before = len(place.requests)
    assert len(await place.backend.jobs.page(20, None)) == 2
    assert len(place.requests) - before <= 1


async def test_rows_of_a_job_that_has_not_begun_have_no_result(place: Place) -> None:
    job = await place.submit("a", attempts=2)
    assert [row.result for row in await place.backend.jobs.rows(job.id)] == [None, None]


async def test_rows_come_page_by_page_without_a_gap(place: Place) -> None:
    """More trials than fit on one page."""
    job = await place.submit("a", attempts=450)
    ids = [row.trial.id for row in await place.backend.jobs.rows(job.id)]
    assert ids == sorted(set(ids)) and len(ids) == 450


async def test_jobs_are_listed_newest_first(place: Place) -> None:
    jobs = [await place.submit(name) for name in ("a", "b", "c")]
    listed = await place.backend.jobs.page(2, None)
    assert [row.id for row in listed] == [jobs[2].id, jobs[1].id]
    assert [row.id for row in await place.backend.jobs.page(2, jobs[1].id)] == [jobs[0].id]
    assert (listed[0].counts.queued, listed[0].name) == (1, f"job-{jobs[2].id}")


async def test_a_job_that_does_not_exist(place: Place) -> None:
    with pytest.raises(NotFound, match="no job 77"):
        await place.backend.jobs.get(77)
    with pytest.raises(NotFound, match="no job 77"):
        await place.backend.jobs.cancel(77)
    with pytest.raises(NotFound, match="no job 77"):
        await place.backend.jobs.rows(77)


async def test_a_trial_its_tries_and_its_files(place: Place) -> None:
    job = await place.submit("a")
    await place.work_off(job, FakeRunner(files=FILES))
    [row] = await place.backend.jobs.rows(job.id)
    found, tries = await place.backend.trials.get(row.trial.id)
    assert (found.trial.outcome, [each.number for each in tries]) == (Outcome.PASSED, [1])
    kept = await place.backend.trials.files(row.trial.id, None)
    assert {file.path for file in kept.files} >= set(FILES)
    content = [piece async for piece in place.backend.trials.read(kept, kept.find("agent/log.txt"))]
    assert b"".join(content) == FILES["agent/log.txt"]
    with pytest.raises(NotFound):
        await place.backend.trials.files(row.trial.id, 7)


async def test_a_report_and_a_comparison(place: Place) -> None:
    first = await place.submit("a", "b", attempts=2)
    await place.work_off(first)
    second = await place.submit("a", "b", attempts=2)
    await place.work_off(second, FakeRunner(results={"b": (FAIL,)}))
    job, report = await place.backend.jobs.report(second.id, False)
    assert (job.id, report.counts.passed, report.counts.failed) == (second.id, 2, 2)
    [comparison] = (await place.backend.jobs.compare(ComparisonWish(sides=(str(first.id), str(second.id))))).items
    assert comparison.a_minus_b == pytest.approx(0.5)
    with pytest.raises(InvalidInput, match="job's number"):
        await place.backend.jobs.compare(ComparisonWish(sides=("first", "second")))


async def test_a_run_is_seen_through_to_its_exit_status(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    job = await place.submit("a", "b")
    assert await place.follow_to_end(job, FakeRunner(results={"a": (PASS,), "b": (FAIL,)})) == 0
    again = await place.submit("c")
    assert await place.follow_to_end(again, FakeRunner(results={"c": (BROKEN,)})) == 3
    assert '"errors": 1' in capsys.readouterr().out
