"""FAULTS 3: wake-ups that come again and again, to several workers, start nothing twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

from seatrial.domain.trial import Outcome
from seatrial.wiring import open_installation
from tests.faults.checker import Checker
from tests.faults.configurations import Configuration
from tests.faults.trial_worker import FakeWorker, Setup, lines_of
from tests.live_processes import submit

_TRIALS, _TIMES = 10, 50


async def test_each_trial_is_executed_once(tmp_path: Path, configuration: Configuration) -> None:
    place = {"home": str(tmp_path / "home"), "diary": str(tmp_path / "diary")}
    setup = configuration.of(Setup(**place, seconds=0.2, lease_sec=60))
    workers = [FakeWorker.launch(setup) for _ in range(2)]
    try:
        async with open_installation(setup.settings()) as installation:
            for worker in workers:
                await asyncio.to_thread(worker.until_ready)
            for _ in range(_TIMES):
                await installation.wake_up.announce()
            job = await submit(installation, _TRIALS)
            for _ in range(_TIMES):
                await installation.wake_up.announce()
            checker = Checker(installation)
            await checker.ended(job)
            await checker.check(job, model_calls=len(lines_of(setup.diary)))
            ended = [(trial.outcome, trial.try_number) for trial in await checker.trials(job)]
            assert ended == [(Outcome.PASSED, 1)] * _TRIALS
    finally:
        for worker in workers:
            worker.end()
