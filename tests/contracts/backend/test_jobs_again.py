"""Resuming, retrying, cancelling and deleting mean the same on this machine and at a service."""

from __future__ import annotations

import pytest

from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome
from seatrial.engine.trials.trial_files import trial_prefix
from seatrial.errors import Conflict, InvalidInput, MissingKey, NotFound
from seatrial.testing.fake_runner import FAIL, FakeRunner
from tests.contracts.backend.place import Place
from tests.task_files import write_task

KEY = {"OPENAI_API_KEY": "sk-of-this-job-alone"}


async def job_with_a_key(place: Place) -> Job:
    """A job whose key came with it; the installation has none of its own."""
    (task,) = await place.here.library.add(write_task(place.folder, "keyed"))
    agent = AgentSpec(name="terminus-2", model="openai/gpt-4o")
    spec = JobSpec(tasks=(TaskRef(name=task.name, digest=task.digest),), agents=(agent,))
    return await place.here.submission.submit(spec, KEY)


async def test_resume_queues_what_was_cancelled(place: Place) -> None:
    job = await place.submit("a", "b")
    assert await place.backend.jobs.cancel(job.id) == 2
    await place.backend.runs.resume(job)
    assert await place.states(job) == ["queued", "queued"]


async def test_resume_queues_what_was_held(place: Place) -> None:
    (task,) = await place.here.library.add(write_task(place.folder, "held"))
    ref = TaskRef(name=task.name, digest=task.digest)
    job = await place.here.submission.prepare(JobSpec(tasks=(ref,), agents=(AgentSpec(name="oracle"),), attempts=2))
    await place.backend.runs.resume(job)
    assert await place.states(job) == ["queued", "queued"]


async def test_resume_leaves_alone_what_has_a_result(place: Place) -> None:
    job = await place.submit("a", "b")
    await place.work_off(job, FakeRunner(results={"b": (FAIL,)}))
    await place.backend.runs.resume(job)
    assert await place.outcomes(job) == [Outcome.PASSED, Outcome.FAILED]


async def test_resume_asks_for_the_key_that_went_with_the_job(place: Place) -> None:
    job = await job_with_a_key(place)
    await place.backend.jobs.cancel(job.id)
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        await place.backend.runs.resume(job)
    assert await place.outcomes(job) == [Outcome.CANCELLED]


async def test_retry_asks_for_the_key_that_went_with_the_job(place: Place) -> None:
    job = await job_with_a_key(place)
    await place.backend.jobs.cancel(job.id)
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        await place.backend.runs.retry(job, [Outcome.CANCELLED])
    assert await place.outcomes(job) == [Outcome.CANCELLED]


async def test_retry_refuses_what_was_graded(place: Place) -> None:
    job = await place.submit("a", "b")
    await place.work_off(job, FakeRunner(results={"b": (FAIL,)}))
    assert await place.backend.runs.retry(job, [Outcome.ERROR, Outcome.CANCELLED]) == 0
    for outcome in (Outcome.PASSED, Outcome.FAILED):
        with pytest.raises(InvalidInput, match="final"):
            await place.backend.runs.retry(job, [outcome])
    assert await place.outcomes(job) == [Outcome.PASSED, Outcome.FAILED]


async def test_a_graded_trial_is_run_again_as_a_further_attempt(place: Place) -> None:
    """Rolling a failure again until it passes changes neither the score nor what the first run said."""
    job = await place.submit("a", "b")
    await place.work_off(job, FakeRunner(results={"b": (FAIL,)}))
    _, before = await place.backend.jobs.report(job.id, tests=False)
    assert len(await place.backend.runs.add_attempts(job, [Outcome.FAILED], None)) == 1
    await place.work_off(job)
    assert await place.outcomes(job) == [Outcome.PASSED, Outcome.FAILED, Outcome.PASSED]
    _, after = await place.backend.jobs.report(job.id, tests=False)
    [configuration], [was] = after.configurations, before.configurations
    assert configuration.valid == was.valid and configuration.valid.value == 0.5
    assert (after.counts, configuration.counts, configuration.coverage) == (before.counts, was.counts, was.coverage)
    assert configuration.added is not None and configuration.added.counts.passed == 1
    assert after.added == 1 and "1 attempt was added" in after.notices[0]
    assert after.rules is not None and after.rules.notes == after.notices
    assert after.spending.tries == 3
    assert [row.counts.passed for row in await place.backend.jobs.page(1, None)] == [1]


async def test_cancel_says_how_many_it_stopped_and_a_second_time_none(place: Place) -> None:
    job = await place.submit("a", attempts=3)
    assert await place.backend.jobs.cancel(job.id) == 3
    assert await place.backend.jobs.cancel(job.id) == 0
    assert await place.outcomes(job) == [Outcome.CANCELLED] * 3


async def test_an_ended_job_is_deleted_with_its_trials_and_files(place: Place) -> None:
    job, other = await place.submit("a", attempts=2), await place.submit("b")
    await place.work_off(job)
    [first, _] = await place.backend.jobs.rows(job.id)
    await place.here.blobs.put_bytes(f"{trial_prefix(first.trial.id)}/1/agent/log.txt", b"kept")
    await place.backend.jobs.delete(job.id)
    with pytest.raises(NotFound):
        await place.backend.jobs.get(job.id)
    with pytest.raises(NotFound):
        await place.backend.trials.get(first.trial.id)
    assert [key async for key in place.here.blobs.list(trial_prefix(first.trial.id))] == []
    assert [row.id for row in await place.backend.jobs.page(9, None)] == [other.id]


async def test_a_job_with_trials_left_to_do_is_not_deleted(place: Place) -> None:
    job = await place.submit("a")
    with pytest.raises(Conflict, match="left to do"):
        await place.backend.jobs.delete(job.id)
    assert await place.states(job) == ["queued"]
    with pytest.raises(NotFound):
        await place.backend.jobs.delete(job.id + 1)
