"""What happened in a trial is told in its order, with the reason at the end; on this machine and at a service."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.cli.commands.trial_logs import print_follow, print_log, print_raw, print_timeline
from seatrial.domain.event import EventKind, NewEvent
from seatrial.domain.result import Result
from seatrial.domain.trial import Cause, Outcome, Trial
from seatrial.errors import NotFound
from seatrial.testing.fake_runner import FAIL, FakeRunner
from tests.contracts.backend.place import Place
from tests.waiting import eventually

OUTPUT = b"".join(b"line %d\n" % number for number in range(50)) + b"FAILED \x1b[31mthe answer is 41\x1b[0m\n"
FILES = {"agent/log.txt": b"hello\n", "verifier/test-stdout.txt": OUTPUT, "trial.log": b"begun\n"}
STEP = {
    "step": 2,
    "source": "agent",
    "message": "I look\naround.\x1b[2J",
    "tools": [{"name": "bash", "input": "ls -la\n"}],
}


async def ended_trial(place: Place, result: Result = FAIL) -> Trial:
    job = await place.submit("a")
    await place.work_off(job, FakeRunner(results={"a": (result,)}, files=FILES))
    [row] = await place.backend.jobs.rows(job.id)
    step = NewEvent(kind=EventKind.TRIAL_STEP, job_id=job.id, trial_id=row.trial.id, attempt=1, data=STEP)
    await place.here.store.events.append([step], place.here.clock())
    return row.trial


async def test_the_timeline_has_steps_outcome_and_the_verifiers_last_lines(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = await ended_trial(place)
    await print_timeline(place.backend, trial.id, None)
    told = capsys.readouterr()
    assert told.out.startswith(f"trial {trial.id}: a · oracle · attempt 1: failed (reward 0)\n")
    assert "  2  I look around.\n" in told.out and "> bash ls -la\n" in told.out
    assert "verifier/test-stdout.txt, its last 20 of 51 lines:\n  | line 31\n" in told.out
    assert told.out.endswith("  | FAILED the answer is 41\n") and "line 30\n" not in told.out
    assert "--raw" in told.err and "agent/log.txt" in told.err
    await print_follow(place.backend, trial.id)
    assert capsys.readouterr().out == told.out


async def test_an_error_is_told_with_the_log_of_its_cause(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    trial = await ended_trial(place, Result(outcome=Outcome.ERROR, cause=Cause.AGENT, message="The agent crashed."))
    await print_timeline(place.backend, trial.id, None)
    assert capsys.readouterr().out.endswith("\nThe agent crashed.\n\nagent/log.txt:\n  | hello\n")


async def test_logs_in_full_and_one_of_them(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    trial = await ended_trial(place)
    await print_raw(place.backend, trial.id, None)
    assert "==> agent/log.txt <==\nhello\n" in capsys.readouterr().out
    await print_log(place.backend, trial.id, None, "trial.log")
    assert capsys.readouterr().out == "begun\n"
    with pytest.raises(NotFound, match=r"Did you mean 'trial\.log'"):
        await print_log(place.backend, trial.id, None, "trail.log")


async def test_a_trial_is_followed_while_it_runs(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    job = await place.submit("a")
    [row] = await place.backend.jobs.rows(job.id)
    with pytest.raises(NotFound, match="--follow"):
        await print_timeline(place.backend, row.trial.id, None)
    following, told = asyncio.create_task(print_follow(place.backend, row.trial.id)), ""

    def is_followed() -> bool:
        nonlocal told
        told += capsys.readouterr().out
        return bool(told)

    await eventually(is_followed, "the first line")
    async with place.working(FakeRunner(results={"a": (FAIL,)}, files=FILES)):
        assert await following == 0
    told += capsys.readouterr().out
    assert "attempt 1: queued\n" in told and "  failed\n" in told and "  | FAILED the answer is 41\n" in told
