"""Resuming and retrying mean the same on this machine and at a service."""

from __future__ import annotations

import pytest

from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome
from seatrial.errors import MissingKey
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


async def test_retry_takes_the_outcomes_that_were_named_and_no_others(place: Place) -> None:
    job = await place.submit("a", "b")
    await place.work_off(job, FakeRunner(results={"b": (FAIL,)}))
    assert await place.backend.runs.retry(job, [Outcome.ERROR, Outcome.CANCELLED]) == 0
    assert await place.backend.runs.retry(job, [Outcome.FAILED]) == 1
    assert await place.outcomes(job) == [Outcome.PASSED, None]
    await place.work_off(job)
    assert await place.outcomes(job) == [Outcome.PASSED, Outcome.PASSED]


async def test_cancel_says_how_many_it_stopped_and_a_second_time_none(place: Place) -> None:
    job = await place.submit("a", attempts=3)
    assert await place.backend.jobs.cancel(job.id) == 3
    assert await place.backend.jobs.cancel(job.id) == 0
    assert await place.outcomes(job) == [Outcome.CANCELLED] * 3
