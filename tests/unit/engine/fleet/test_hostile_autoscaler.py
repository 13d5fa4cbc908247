"""An autoscaler that adds machines and ends any unprotected one whenever it likes: no running trial is ended by it.

Real workers with a fake runner on a fake platform. Every call to the platform and every claim takes a random number of
turns of the event loop, so that the autoscaler strikes between any two steps of a worker.
"""

from __future__ import annotations

import asyncio
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from seatrial.domain.job import JobSpec, plan
from seatrial.domain.result import Result
from seatrial.domain.trial import Outcome, Trial, TrialState
from seatrial.engine.clock import system_clock
from seatrial.engine.fleet.tenure import StayRules, Tenure
from seatrial.ports.runner import Order
from seatrial.ports.store import TrialFilter
from seatrial.testing.fake_platform import FakePlatform
from seatrial.testing.memory_store.trials import MemoryTrials
from seatrial.worker import Worker
from tests.unit.test_worker import PASSED, Bench, ScriptedRunner, bench
from tests.waiting import LIMIT_SEC

STEPS = 400
STRIKES = 15


class SlowTrials(MemoryTrials):
    """Claims take some turns of the event loop, before and after the store decides."""

    dice: random.Random

    async def claim(self, *arguments: Any, **options: Any) -> list[Trial]:
        await turns(self.dice.randrange(4))
        claimed = await super().claim(*arguments, **options)
        await turns(self.dice.randrange(4))
        return claimed

    async def any_due(self, now: datetime) -> bool:
        await turns(self.dice.randrange(3))
        return await super().any_due(now)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Fleet:
    """Workers on machines of the fake platform, and the hostile autoscaler over them."""

    def __init__(self, ground: Bench, seed: int, protects: bool) -> None:
        self.dice = random.Random(seed)
        self.ground = ground
        self.protects = protects
        self.platform = FakePlatform(delays=lambda: self.dice.randrange(3))
        self.workers: dict[str, tuple[Worker, asyncio.Task[None]]] = {}
        self.ended_trials = 0
        self.started = 0
        self.steps = 0
        ground.store.trials = trials = SlowTrials(ground.store.records)
        trials.dice = self.dice

    def add(self) -> None:
        self.started += 1
        name = f"m{self.started}"
        machine = self.platform.add(name)
        rules = StayRules(leave_when_idle_sec=0.05, minimum_workers=1, release_after_sec=self.dice.choice((0, 0.01)))
        tenure = Tenure(name, self.ground.store, system_clock, rules, machine if self.protects else None)
        worker = self.ground.worker(ScriptedRunner(self.behave), name=name, capacity=3, tenure=tenure)
        self.workers[name] = worker, asyncio.create_task(worker.run())

    async def behave(self, order: Order) -> Result:
        await turns(self.dice.randrange(60))
        return PASSED

    async def scale_in(self) -> None:
        """Ends a machine without asking. Counts the trials that it runs at this moment."""
        if not self.platform.victims:
            return
        name = self.dice.choice(self.platform.victims)
        self.platform.end(name)
        held = await self.ground.store.trials.running_by_worker()
        self.ended_trials += held.get(name, 0)
        await self.bury(name)

    async def bury(self, name: str) -> None:
        _, working = self.workers.pop(name)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await self.ground.store.workers.forget(name)

    def forget_those_who_left(self) -> None:
        for name, (_, working) in list(self.workers.items()):
            if working.done():
                del self.workers[name]
                self.platform.protected.pop(name, None)

    async def submit(self) -> None:
        spec: JobSpec = self.ground.job.spec.model_copy(update={"attempts": self.dice.randrange(1, 6)})
        await self.ground.store.jobs.create(spec, tuple(plan(spec)), system_clock())

    async def step(self) -> None:
        self.steps += 1
        self.forget_those_who_left()
        move = self.dice.random()
        if move < 0.2 and len(self.workers) < 6:
            self.add()
        elif move < 0.5:
            await self.scale_in()
        elif move < 0.6 and self.steps < STEPS:  # later, work runs out, and idle workers can be struck
            await self.submit()
        elif move < 0.65:
            self.platform.refuses = not self.platform.refuses
        await turns(self.dice.randrange(12))
        if move > 0.97:
            await asyncio.sleep(0.005)

    async def finish(self) -> None:
        """The autoscaler rests; what is left of the work ends."""
        self.platform.refuses = False
        async with asyncio.timeout(LIMIT_SEC):
            while await self.ground.store.totals.open_work():
                self.forget_those_who_left()
                if not self.workers:
                    self.add()
                await asyncio.sleep(0.01)
        for name in list(self.workers):
            await self.bury(name)


@pytest.mark.parametrize("seed", range(8))
async def test_no_scale_in_ends_a_running_trial(tmp_path: Path, seed: int) -> None:
    async with bench(tmp_path, attempts=5) as ground:
        fleet = Fleet(ground, seed, protects=True)
        async with asyncio.timeout(5 * LIMIT_SEC):
            while fleet.steps < STEPS or len(fleet.platform.ended) < STRIKES:
                await fleet.step()
        await fleet.finish()
        assert fleet.ended_trials == 0
        trials = [row.trial async for row in ground.store.trials.each(TrialFilter())]
        assert len(trials) > STRIKES
        assert {(trial.state, trial.outcome) for trial in trials} == {(TrialState.ENDED, Outcome.PASSED)}
        assert {trial.try_number for trial in trials} == {1}, "every trial ran once"


async def test_without_protection_the_same_autoscaler_ends_trials(tmp_path: Path) -> None:
    async with bench(tmp_path, attempts=5) as ground:
        fleet = Fleet(ground, 1, protects=False)
        async with asyncio.timeout(LIMIT_SEC):
            while not fleet.ended_trials:
                await fleet.step()
        for name in list(fleet.workers):
            await fleet.bury(name)
