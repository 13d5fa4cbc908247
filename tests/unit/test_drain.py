"""A worker that is told to leave: it drains in the time that it has, and gives the rest back."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from seatrial.domain.result import Result
from seatrial.domain.trial import Outcome, TrialState
from seatrial.engine.clock import system_clock
from seatrial.engine.fleet.tenure import StayRules, Tenure
from seatrial.ports.platform import Notice
from seatrial.ports.runner import Order
from seatrial.ports.store import Heartbeat
from seatrial.testing.fake_platform import FakeMachine, FakePlatform
from tests.unit.test_worker import LONG_SEC, PASSED, Bench, ScriptedRunner, bench, succeed
from tests.waiting import LIMIT_SEC, eventually


class Endless:
    """Trials that run until they are let go."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def __call__(self, order: Order) -> Result:
        await self.go_on.wait()
        return PASSED


def tenure_of(ground: Bench, machine: FakeMachine | None, name: str = "w1", **rules: float) -> Tenure:
    stay = StayRules(lease=timedelta(seconds=LONG_SEC), **rules)  # type: ignore[arg-type]
    return Tenure(name, ground.store, system_clock, stay, machine, machine)


async def test_what_cannot_end_in_time_is_given_back_and_does_not_count(tmp_path: Path) -> None:
    async with bench(tmp_path, attempts=3) as ground:
        runner = ScriptedRunner(Endless())
        worker = ground.worker(runner)
        working = asyncio.create_task(worker.run())
        await eventually(lambda: len(runner.orders) == 3, "three trials run")
        worker.leave(within_sec=0.05)
        async with asyncio.timeout(LIMIT_SEC):
            await working
        for number in (1, 2, 3):
            trial = (await ground.store.trials.get(number)).trial
            assert (trial.state, trial.tries_made, trial.shared_losses) == (TrialState.QUEUED, 0, 0)
            assert not trial.suspected
        assert await ground.store.workers.all() == []
        await ground.until_ended(ground.worker(ScriptedRunner(succeed), name="w2"))
        assert await ground.outcomes() == [Outcome.PASSED] * 3


async def test_what_ends_in_time_is_recorded(tmp_path: Path) -> None:
    async with bench(tmp_path, attempts=3) as ground:
        endless = Endless()
        runner = ScriptedRunner(endless)
        worker = ground.worker(runner)
        working = asyncio.create_task(worker.run())
        await eventually(lambda: len(runner.orders) == 3, "three trials run")
        worker.leave(within_sec=LIMIT_SEC)
        await ground.store.workers.several_beats()
        assert not working.done()
        endless.go_on.set()
        async with asyncio.timeout(LIMIT_SEC):
            await working
        assert await ground.outcomes() == [Outcome.PASSED] * 3


async def test_a_later_notice_shortens_the_time_and_never_extends_it(tmp_path: Path) -> None:
    async with bench(tmp_path) as ground:
        runner = ScriptedRunner(Endless())
        worker = ground.worker(runner)
        working = asyncio.create_task(worker.run())
        await eventually(lambda: runner.orders, "the trial runs")
        worker.leave()
        await ground.store.workers.several_beats()
        assert not working.done(), "without a limit it waits"
        worker.leave(within_sec=0.05)
        worker.leave(within_sec=10 * LIMIT_SEC)
        worker.leave()
        async with asyncio.timeout(LIMIT_SEC):
            await working
        assert (await ground.store.trials.get(1)).trial.state is TrialState.QUEUED


async def test_a_notice_of_the_platform_drains_within_its_time(tmp_path: Path) -> None:
    async with bench(tmp_path, attempts=2) as ground:
        platform = FakePlatform()
        machine = platform.add("m")
        runner = ScriptedRunner(Endless())
        worker = ground.worker(runner, capacity=1, tenure=tenure_of(ground, machine, notice_sec=0.01))
        working = asyncio.create_task(worker.run())
        await eventually(lambda: runner.orders, "the trial runs")
        assert platform.protected == {"m": True}, "before it started"
        machine.notice = Notice(reason="The instance is interrupted.", within_sec=0.05)
        async with asyncio.timeout(LIMIT_SEC):
            await working
        assert len(runner.orders) == 1, "it claimed nothing more"
        assert (await ground.store.trials.get(1)).trial.state is TrialState.QUEUED
        assert platform.protected == {"m": False}, "it may go"


@pytest.mark.parametrize("trouble", ["refuses", "is_away"])
async def test_a_worker_whose_machine_is_not_protected_claims_nothing(tmp_path: Path, trouble: str) -> None:
    async with bench(tmp_path) as ground:
        platform = FakePlatform()
        setattr(platform, trouble, True)
        runner = ScriptedRunner(succeed)
        worker = ground.worker(runner, tenure=tenure_of(ground, platform.add("m")))
        working = asyncio.create_task(worker.run())
        await eventually(lambda: len(platform.calls) >= 2, "it asks again")
        assert runner.orders == []
        assert (await ground.store.trials.get(1)).trial.try_number == 0
        row = await ground.store.workers.all()
        assert [trouble.duty for trouble in row[0].troubles] in ([], ["claims"])
        setattr(platform, trouble, False)
        await eventually(lambda: ground.outcomes_are(Outcome.PASSED), "it runs once the machine is protected")
        worker.leave()
        await working


async def test_idle_workers_leave_down_to_the_minimum(tmp_path: Path) -> None:
    async with bench(tmp_path, attempts=8) as ground:
        names = [f"w{number}" for number in range(5)]
        rules = {"leave_when_idle_sec": 0.05, "minimum_workers": 2}
        workers = {
            name: ground.worker(ScriptedRunner(succeed), name=name, tenure=tenure_of(ground, None, name, **rules))
            for name in names
        }
        working = {name: asyncio.create_task(worker.run()) for name, worker in workers.items()}
        await eventually(lambda: sum(task.done() for task in working.values()) == 3, "three have left")
        # Idle workers leave while others may still work on the last trials.
        await eventually(lambda: ground.outcomes_are(Outcome.PASSED), "all trials pass")
        staying = [name for name, task in working.items() if not task.done()]
        await ground.store.workers.several_beats()
        assert [row.worker for row in await ground.store.workers.all()] == staying
        assert all(workers[name].left_idle is (name not in staying) for name in names)
        for name in staying:
            workers[name].leave()
            await working[name]
            assert not workers[name].left_idle


async def test_a_worker_that_claims_something_while_others_leave_stays(tmp_path: Path) -> None:
    async with bench(tmp_path) as ground:
        about = Heartbeat(worker="other", host="here", pid=1, capacity=1, started_at=system_clock())
        await ground.store.workers.beat(about, system_clock())
        endless = Endless()
        runner = ScriptedRunner(endless)
        worker = ground.worker(runner, tenure=tenure_of(ground, None, leave_when_idle_sec=0.05))
        working = asyncio.create_task(worker.run())
        await eventually(lambda: runner.orders, "the trial runs")
        await ground.store.workers.several_beats()
        assert not working.done()
        endless.go_on.set()
        async with asyncio.timeout(LIMIT_SEC):
            await working
        assert worker.left_idle
        assert await ground.outcomes() == [Outcome.PASSED]
