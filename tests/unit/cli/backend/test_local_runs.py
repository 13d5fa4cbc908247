"""A run in this process ends when its trials have, and not when somebody could not count them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from seatrial.cli.backend.local import LocalRuns
from seatrial.domain.result import Result
from seatrial.domain.trial import Outcome
from seatrial.errors import StoreUnavailable
from seatrial.ports.runner import Order, Progress
from seatrial.ports.store import TrialFilter
from seatrial.testing.fake_runner import PASS
from seatrial.wiring import assemble_worker, open_installation
from tests.live_processes import settings_of, submit
from tests.waiting import LIMIT_SEC


class UncountableAtFirst:
    """The jobs of a store that does not answer the first questions."""

    def __init__(self, jobs: Any) -> None:
        self._jobs = jobs
        self.refused = asyncio.Event()
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jobs, name)

    async def counts(self, *arguments: Any) -> Any:
        self.asked += 1
        if self.asked <= 2:
            raise StoreUnavailable("Away.")
        self.refused.set()
        return await self._jobs.counts(*arguments)


async def test_a_run_goes_on_past_a_count_that_failed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with open_installation(settings_of(tmp_path)) as here, asyncio.timeout(LIMIT_SEC):
        job = await submit(here, trials=3)
        here.store.jobs = jobs = UncountableAtFirst(here.store.jobs)  # type: ignore[assignment]

        class Runner:
            async def run(self, order: Order, progress: Progress) -> Result:
                await jobs.refused.wait()
                return PASS

        runs = LocalRuns(here, lambda capacity, job_id: assemble_worker(here, Runner(), 1, job_id))
        assert await runs.follow_to_end(job, as_json=True) == 0
        rows = [row async for row in here.store.trials.each(TrialFilter(job_id=job.id))]
        assert [row.trial.outcome for row in rows] == [Outcome.PASSED] * 3
    assert any("Progress failed" in said for said in caplog.messages)
