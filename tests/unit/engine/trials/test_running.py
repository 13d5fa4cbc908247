"""The trials that a worker runs: which take a slot, which can still be stopped, and what is given back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from seatrial.adapters.wake_up_local import LocalWakeUp
from seatrial.domain.result import Result
from seatrial.domain.trial import Outcome, Trial
from seatrial.engine.clock import system_clock
from seatrial.engine.trials.trial_slots import TrialSlots
from seatrial.ports.runner import Order
from seatrial.testing.memory_blobs import MemoryBlobs
from seatrial.worker import Claiming
from tests.unit.test_worker import PASSED, ScriptedRunner, bench, succeed
from tests.waiting import LIMIT_SEC


class SlowBlobs(MemoryBlobs):
    """Keeps nothing before ``ready`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.ready = asyncio.Event()
        self.asked = 0

    async def take_folder(self, prefix: str, root: Path, names: Sequence[str]) -> list[int]:
        self.asked += 1
        await self.ready.wait()
        return await super().take_folder(prefix, root, names)


async def test_the_next_trial_starts_while_the_last_one_is_saved(tmp_path: Path) -> None:
    async with bench(tmp_path, attempts=9) as ground:
        ground.blobs = blobs = SlowBlobs()
        runner = ScriptedRunner(succeed)
        worker = ground.worker(runner, capacity=2)
        working = asyncio.create_task(worker.run())
        async with asyncio.timeout(LIMIT_SEC):
            while blobs.asked < 4:
                await asyncio.sleep(0.01)
        await ground.store.workers.several_beats()
        assert len(runner.orders) == 4, "no more than twice its capacity, however slow the blobs are"
        assert await ground.outcomes() == [None] * 9
        blobs.ready.set()
        async with asyncio.timeout(LIMIT_SEC):
            while None in await ground.outcomes():
                await asyncio.sleep(0.01)
        worker.leave()
        await working
        assert await ground.outcomes() == [Outcome.PASSED] * 9


async def test_a_jobs_own_limit_counts_what_is_being_saved(tmp_path: Path) -> None:
    async with bench(tmp_path, attempts=3, concurrency=1) as ground:
        ground.blobs = blobs = SlowBlobs()
        runner = ScriptedRunner(succeed)
        working = asyncio.create_task(ground.worker(runner).run())
        async with asyncio.timeout(LIMIT_SEC):
            while not blobs.asked:
                await asyncio.sleep(0.01)
        await ground.store.workers.several_beats()
        assert len(runner.orders) == 1
        working.cancel()
        blobs.ready.set()
        await asyncio.gather(working, return_exceptions=True)


@pytest.mark.parametrize("by", ["cancel", "stop", "leave"])
async def test_what_is_being_saved_is_past_stopping(tmp_path: Path, by: str) -> None:
    async with bench(tmp_path) as ground:
        ground.blobs = blobs = SlowBlobs()
        worker = ground.worker(ScriptedRunner(succeed))
        working = asyncio.create_task(worker.run())
        async with asyncio.timeout(LIMIT_SEC):
            while not blobs.asked:
                await asyncio.sleep(0.01)
        if by == "cancel":
            await ground.store.jobs.cancel(ground.job.id, system_clock())
            await ground.store.workers.several_beats()
        elif by == "stop":
            working.cancel()
        worker.leave()
        if by != "stop":
            await ground.store.workers.several_beats()
        assert not working.done()
        blobs.ready.set()
        await asyncio.gather(working, return_exceptions=True)
        assert await ground.outcomes() == [Outcome.PASSED]


async def test_cancelling_stops_what_runs(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def hang(order: Order) -> Result:
        started.set()
        await asyncio.sleep(60)
        return PASSED

    async with bench(tmp_path, attempts=6) as ground:
        worker = ground.worker(ScriptedRunner(hang), capacity=2)
        working = asyncio.create_task(worker.run())
        await started.wait()
        await ground.store.jobs.cancel(ground.job.id, system_clock())
        async with asyncio.timeout(LIMIT_SEC):
            while None in await ground.outcomes():
                await asyncio.sleep(0.01)
        assert await ground.outcomes() == [Outcome.CANCELLED] * 6
        worker.leave()
        await working


async def test_a_worker_that_is_stopped_gives_its_trials_back(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def hang(order: Order) -> Result:
        started.set()
        await asyncio.sleep(60)
        return PASSED

    async with bench(tmp_path) as ground:
        working = asyncio.create_task(ground.worker(ScriptedRunner(hang)).run())
        await started.wait()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        row = await ground.store.trials.get(1)
        assert (row.trial.state, row.trial.tries_made) == ("queued", 0)
        await ground.until_ended(ground.worker(ScriptedRunner(succeed), name="w2"))
        assert await ground.outcomes() == [Outcome.PASSED]


class BrokenShow(LocalWakeUp):
    """Cannot show what runs."""

    def runs(self, trial: Trial) -> None:
        raise RuntimeError("The hub is closed.")

    def ended(self, trial: Trial) -> None:
        raise KeyError(trial.id)


async def test_trials_that_cannot_be_shown_run_and_end(tmp_path: Path) -> None:
    async with bench(tmp_path, attempts=6) as ground:
        ground.wake_up = BrokenShow(tmp_path)
        worker = ground.worker(ScriptedRunner(succeed), capacity=2)
        working = asyncio.create_task(worker.run())
        async with asyncio.timeout(LIMIT_SEC):
            while None in await ground.outcomes():
                await asyncio.sleep(0.01)
        await ground.store.workers.several_beats()
        [row] = await ground.store.workers.all()
        assert [trouble.duty for trouble in row.troubles] == ["shown trials"]
        worker.leave()
        async with asyncio.timeout(LIMIT_SEC):
            await working
        assert await ground.outcomes() == [Outcome.PASSED] * 6


class BrokenSlots(TrialSlots):
    """Cannot be left: a mistake of ours, not of the disk."""

    def leave(self, trial_id: int) -> None:
        super().leave(trial_id)
        raise KeyError(trial_id)


async def test_trials_end_and_so_does_the_worker_although_its_room_is_broken(tmp_path: Path) -> None:
    async with bench(tmp_path, attempts=3) as ground:
        worker = ground.worker(ScriptedRunner(succeed), claiming=Claiming(slots=BrokenSlots(1)))
        async with asyncio.timeout(LIMIT_SEC):
            await ground.until_ended(worker)
        assert await ground.outcomes() == [Outcome.PASSED] * 3
