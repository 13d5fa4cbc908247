"""Workers of another home have another secret key: a job's keys reach a worker that can open them, or are refused."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome
from seatrial.errors import SetupProblem
from seatrial.wiring import Installation, open_installation
from tests.faults.checker import Checker
from tests.faults.trial_worker import FakeWorker, Setup
from tests.live_processes import TASK

KEYS = {"OPENAI_API_KEY": "sk-canary-0123456789"}


async def spec_of(installation: Installation) -> JobSpec:
    (task,) = await installation.library.add(TASK)
    refs = (TaskRef(name=task.name, digest=task.digest),)
    return JobSpec(tasks=refs, agents=(AgentSpec(name="terminus-2", model="openai/gpt-5.2"),), attempts=6)


async def until_heard(installation: Installation, count: int) -> None:
    async with asyncio.timeout(60):
        while len(await installation.store.workers.all()) < count:
            await asyncio.sleep(0.05)


async def test_a_job_whose_keys_no_worker_can_open_is_refused(tmp_path: Path) -> None:
    ours = Setup(home=str(tmp_path / "home"), diary=str(tmp_path / "diary"), secret_key="ours", lease_sec=60)
    async with open_installation(ours.settings()) as installation:
        spec = await spec_of(installation)
        with ExitStack() as stack:
            theirs = FakeWorker.start(replace(ours, secret_key="theirs"))
            stack.callback(theirs.end)
            await until_heard(installation, 1)
            with pytest.raises(SetupProblem, match="another secret key") as refusal:
                await installation.submission.submit(spec, KEYS)
            assert "SEATRIAL_SECRET_KEY" in refusal.value.fix
            assert KEYS["OPENAI_API_KEY"] not in str(refusal.value)

            able = FakeWorker.start(ours)
            stack.callback(able.end)
            await until_heard(installation, 2)
            job = await installation.submission.submit(spec, KEYS)
            checker = Checker(installation)
            await checker.ended(job)
        assert [trial.outcome for trial in await checker.trials(job)] == [Outcome.PASSED] * 6
        lines = [line.split() for line in Path(ours.diary).read_text().splitlines()]
        assert {line[2] for line in lines} == {str(able.process.pid)}, "the other one left them alone"
        assert {line[3] for line in lines} == {"1"}, "each try had the key"
        await checker.check(job)
