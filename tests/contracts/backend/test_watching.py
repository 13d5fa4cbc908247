"""A job that runs elsewhere is watched to its end; an interrupt leaves it running."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from seatrial.domain.result import Result
from seatrial.domain.trial import Cause, Outcome
from seatrial.testing.fake_runner import FAIL, FakeRunner
from tests.contracts.backend.place import Place
from tests.waiting import eventually

BROKEN = Result(outcome=Outcome.ERROR, cause=Cause.VERIFIER, message="The tests did not start.")


async def test_a_running_job_is_watched_to_its_result(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    job = await place.submit("a", "b")
    watching = asyncio.create_task(place.backend.runs.watch(job, as_json=False))
    async with place.working(FakeRunner(results={"b": (FAIL,)})):
        assert await watching == 0
    told = capsys.readouterr()
    assert f"job {job.id}: 2 trials: 1 passed, 1 failed" in told.out
    [failed] = [row.trial.id for row in await place.backend.jobs.rows(job.id) if row.trial.outcome is Outcome.FAILED]
    program = place.backend.runs.program
    assert f"{program} report {job.id}" in told.out and f"{program} trial logs {failed}" in told.out
    assert f"job {job.id}: 2/2" in told.err


async def test_an_ended_job_is_told_at_once_with_its_exit_status(place: Place) -> None:
    job = await place.submit("a")
    await place.work_off(job, FakeRunner(results={"a": (BROKEN,)}))
    assert await place.backend.runs.watch(job, as_json=True) == 3


async def test_an_interrupt_leaves_the_job_as_it_is(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    job = await place.submit("a")
    before = signal.getsignal(signal.SIGINT)
    watching = asyncio.create_task(place.backend.runs.watch(job, as_json=True))
    await eventually(lambda: signal.getsignal(signal.SIGINT) is not before, "it listens to signals")
    os.kill(os.getpid(), signal.SIGINT)
    assert await watching == 130
    assert f"Job {job.id} continues" in capsys.readouterr().err
    assert await place.states(job) == ["queued"]
