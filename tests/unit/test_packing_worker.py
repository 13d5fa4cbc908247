"""A worker runs what fits, gives back what it cannot run, and pauses when memory is short."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from seatrial.adapters.machine_usage_files import FileMachineUsage
from seatrial.domain.fleet.needs import Abilities, Needs
from seatrial.domain.fleet.packing import Packing, Size
from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.result import Result
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Trial, TrialState
from seatrial.engine.clock import system_clock
from seatrial.engine.trials.trial_slots import TrialSlots
from seatrial.errors import StoreUnavailable
from seatrial.installed import is_installed
from seatrial.ports.runner import Order
from seatrial.ports.store import TrialFilter
from seatrial.system.machine import MemoryBrake
from seatrial.testing.memory_meter import MemoryMeter
from seatrial.testing.memory_store.trials import MemoryTrials
from seatrial.testing.quiet_wake_up import QuietWakeUp
from seatrial.worker import Claiming, Worker
from tests.unit.test_worker import PASSED, TASK, Bench, ScriptedRunner, bench
from tests.waiting import LIMIT_SEC, eventually

GB = 1024
ROOM = Packing(size=Size(memory_mb=20 * GB, cpus=100), usual=Size(memory_mb=2 * GB, cpus=1))


class Crowd:
    """Trials wait inside until the test lets them out. Remembers how much memory they declared together."""

    def __init__(self) -> None:
        self.out = asyncio.Event()
        self.inside: dict[int, int] = {}
        self.most_mb = 0

    async def __call__(self, order: Order) -> Result:
        self.inside[order.trial.id] = order.trial.needs.memory_mb or 0
        self.most_mb = max(self.most_mb, sum(self.inside.values()))
        try:
            await self.out.wait()
            await asyncio.sleep(0)
            return PASSED
        finally:
            del self.inside[order.trial.id]


async def add_job(ground: Bench, attempts: int, needs: Needs) -> Job:
    spec = JobSpec(
        tasks=(TaskRef(name=TASK.name, digest=TASK.digest),), agents=(AgentSpec(name="oracle"),), attempts=attempts
    )
    trials = tuple(plan(spec, {(TASK.digest, 0): needs}))
    return await ground.store.jobs.create(spec, trials, system_clock())


@asynccontextmanager
async def working(ground: Bench, runner: ScriptedRunner, *claimings: Claiming) -> AsyncIterator[list[Worker]]:
    workers = [ground.worker(runner, name=f"w{index}", claiming=each) for index, each in enumerate(claimings)]
    tasks = [asyncio.create_task(worker.run()) for worker in workers]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.leave()
        async with asyncio.timeout(LIMIT_SEC):
            await asyncio.gather(*tasks)


def packed(folder: Path, **more: object) -> Claiming:
    knows = more.pop("knows", lambda agent: True)
    slots = TrialSlots.packed(ROOM, Abilities(), FileMachineUsage(folder / "room", "w"), knows)  # type: ignore[arg-type]
    return Claiming(slots=slots, **more)  # type: ignore[arg-type]


async def ended(ground: Bench) -> int:
    rows = [row async for row in ground.store.trials.each(TrialFilter(states=(TrialState.ENDED,)))]
    return len(rows)


async def test_no_more_memory_is_declared_than_there_is(tmp_path: Path) -> None:
    async with bench(tmp_path, attempts=1) as ground:
        await add_job(ground, 12, Needs(memory_mb=8 * GB))
        await add_job(ground, 12, Needs(memory_mb=1 * GB))
        crowd = Crowd()
        async with working(ground, ScriptedRunner(crowd), packed(tmp_path)):
            await eventually(lambda: sum(crowd.inside.values()) >= 18 * GB, "the room is full")
            assert sum(crowd.inside.values()) <= 20 * GB
            crowd.out.set()
            async with asyncio.timeout(LIMIT_SEC):
                while await ended(ground) < 25:
                    await asyncio.sleep(0.01)
    assert crowd.most_mb <= 20 * GB


class DeafWakeUp(QuietWakeUp):
    """Not even the idle interval ends a wait. Tells when the worker is done with a trial."""

    def __init__(self) -> None:
        super().__init__()
        self.done_with_one = asyncio.Event()

    def ended(self, trial: Trial) -> None:
        self.done_with_one.set()

    async def wait(self, timeout: float) -> None:
        await asyncio.Event().wait()


class SlowToRefuse(MemoryTrials):
    """A claim that finds nothing takes until ``meanwhile`` has happened."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def claim(self, *arguments: Any, **options: Any) -> list[Trial]:
        found = await super().claim(*arguments, **options)
        if not found and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return found


async def test_room_that_gets_free_during_a_claim_is_offered_at_once(tmp_path: Path) -> None:
    async with bench(tmp_path, attempts=1) as ground:
        await add_job(ground, 2, Needs(memory_mb=19 * GB))
        crowd, trials = Crowd(), SlowToRefuse(ground.store.records)
        wake_up = DeafWakeUp()
        ground.store.trials, ground.wake_up = trials, wake_up  # type: ignore[assignment]

        async def everybody_leaves() -> None:
            crowd.out.set()
            await wake_up.done_with_one.wait()

        trials.meanwhile = everybody_leaves
        async with working(ground, ScriptedRunner(crowd), packed(tmp_path)):
            async with asyncio.timeout(LIMIT_SEC):
                while await ended(ground) < 3:
                    await asyncio.sleep(0.01)
    assert trials.meanwhile is None, "a claim found no room before it got free"


async def test_two_processes_share_one_room(tmp_path: Path) -> None:
    async with bench(tmp_path) as ground:
        await add_job(ground, 30, Needs(memory_mb=4 * GB))
        crowd = Crowd()
        async with working(ground, ScriptedRunner(crowd), packed(tmp_path), packed(tmp_path)):
            await eventually(lambda: sum(crowd.inside.values()) >= 16 * GB, "the room is full")
            crowd.out.set()
            async with asyncio.timeout(LIMIT_SEC):
                while await ended(ground) < 31:
                    await asyncio.sleep(0.01)
    assert 16 * GB <= crowd.most_mb <= 20 * GB


async def test_a_trial_whose_agent_is_not_installed_goes_to_another_worker(tmp_path: Path) -> None:
    async with bench(tmp_path) as ground:
        await add_job(ground, 3, Needs(agent="my.agents:Clever"))
        crowd, stranger = Crowd(), packed(tmp_path, knows=lambda agent: False)
        crowd.out.set()
        async with working(ground, ScriptedRunner(crowd), stranger):
            slots = stranger.slots
            assert slots is not None
            await eventually(lambda: slots.abilities.lacks == ("my.agents:Clever",), "the worker knows what it lacks")
            await eventually(lambda: ended(ground), "the trial ends elsewhere")
            await ground.store.workers.several_beats()
            [row] = await ground.store.workers.all()
            assert row.abilities.lacks == ("my.agents:Clever",)
            assert await ended(ground) == 1, "only the other job's trial ran here"
        async with working(ground, ScriptedRunner(crowd), packed(tmp_path)):
            async with asyncio.timeout(LIMIT_SEC):
                while await ended(ground) < 4:
                    await asyncio.sleep(0.01)
        rows = [row async for row in ground.store.trials.each(TrialFilter())]
        assert {row.trial.tries_made for row in rows} == {1}, "a try that was given back does not count"


class KeepsWhatItGave(MemoryTrials):
    """Takes no trial back until the test says so."""

    is_away = True

    async def give_back(self, *arguments: Any, **options: Any) -> Any:
        if self.is_away:
            raise StoreUnavailable("Away.")
        return await super().give_back(*arguments, **options)


async def test_a_trial_that_cannot_be_given_back_keeps_no_other_from_its_start(tmp_path: Path) -> None:
    async with bench(tmp_path) as ground:
        ground.store.trials = trials = KeepsWhatItGave(ground.store.records)
        await add_job(ground, 1, Needs(agent="my.agents:Clever", memory_mb=4 * GB))
        await add_job(ground, 3, Needs(memory_mb=4 * GB))
        crowd, stranger = Crowd(), packed(tmp_path, knows=lambda agent: False)
        async with working(ground, ScriptedRunner(crowd), stranger):
            await eventually(lambda: len(crowd.inside) == 4, "whatever was claimed with it runs")
            await eventually(lambda: _told(ground, "trials to give back"), "the heartbeat tells it")
            await add_job(ground, 1, Needs(memory_mb=6 * GB))
            await eventually(lambda: sum(crowd.inside.values()) == 18 * GB, "it takes no room")
            trials.is_away = False
            await eventually(lambda: not _told(ground, "trials to give back"), "it was given back")
            crowd.out.set()
        async with working(ground, ScriptedRunner(crowd), packed(tmp_path)):
            async with asyncio.timeout(LIMIT_SEC):
                while await ended(ground) < 6:
                    await asyncio.sleep(0.01)
        rows = [row async for row in ground.store.trials.each(TrialFilter())]
        assert {row.trial.tries_made for row in rows} == {1}


async def test_packages_that_break_when_they_are_imported_have_no_agents(tmp_path: Path) -> None:
    package = tmp_path / "breaks_when_imported"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('no licence')")
    (package / "agent.py").touch()
    sys.path.insert(0, str(tmp_path))
    try:
        assert not is_installed("breaks_when_imported.agent:Agent")
        (package / "__init__.py").write_text("")
        assert is_installed("breaks_when_imported.agent:Agent")
    finally:
        sys.path.remove(str(tmp_path))


class FullDisk(FileMachineUsage):
    """Writes nothing while ``is_full``, except when it is new."""

    is_full = False

    def declare(self, held: Size) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        super().declare(held)


async def test_trials_run_and_end_while_the_account_cannot_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with bench(tmp_path) as ground:
        account, other = FullDisk(tmp_path / "room", "w"), FileMachineUsage(tmp_path / "room", "other")
        account.is_full = True
        await add_job(ground, 4, Needs(memory_mb=4 * GB))
        crowd, claiming = Crowd(), Claiming(slots=TrialSlots.packed(ROOM, Abilities(), account, lambda agent: True))
        async with working(ground, ScriptedRunner(crowd), claiming):
            await eventually(lambda: len(crowd.inside) == 5, "all run")
            assert other.others().memory_mb == 0
            account.is_full = False
            await eventually(lambda: other.others().memory_mb >= 16 * GB, "it is declared without a new trial")
            account.is_full = True
            crowd.out.set()
            async with asyncio.timeout(LIMIT_SEC):
                while await ended(ground) < 5:
                    await asyncio.sleep(0.01)
        other.close()
    assert sum("cannot see what this one holds" in message for message in caplog.messages) == 2, "once for each outage"


def _told(ground: Bench, duty: str) -> bool:
    rows = ground.store.workers.rows.values()
    return any(trouble.duty == duty for row in rows for trouble in row.troubles)


async def test_sandboxes_that_could_not_be_tried_are_tried_again_and_the_heartbeat_says_so(tmp_path: Path) -> None:
    async with bench(tmp_path) as ground:
        await add_job(ground, 1, Needs(sandbox="oci"))
        crowd, can_be_tried = Crowd(), asyncio.Event()
        crowd.out.set()

        async def examine() -> list[str]:
            if not can_be_tried.is_set():
                raise OSError(24, "Too many open files")
            return ["oci"]

        async with working(ground, ScriptedRunner(crowd), packed(tmp_path)) as [worker]:
            worker.can_use_only(("auto",))
            examining = asyncio.create_task(worker.find_sandboxes(examine, every_sec=0.01))
            await eventually(lambda: _told(ground, "sandbox checks"), "the heartbeat tells it")
            async with asyncio.timeout(LIMIT_SEC):
                while not await ended(ground):
                    await asyncio.sleep(0.01)
            await ground.store.workers.several_beats()
            assert await ended(ground) == 1, "only what needs no certain sandbox"
            can_be_tried.set()
            await examining
            async with asyncio.timeout(LIMIT_SEC):
                while await ended(ground) < 2:
                    await asyncio.sleep(0.01)
            await eventually(lambda: not _told(ground, "sandbox checks"), "all is well")
            [row] = await ground.store.workers.all()
            assert row.sandboxes == ("oci",)


async def test_nothing_is_claimed_while_memory_is_short(tmp_path: Path) -> None:
    async with bench(tmp_path, attempts=3) as ground:
        meter, crowd = MemoryMeter(available_percent=2), Crowd()
        crowd.out.set()
        brake = MemoryBrake(meter, 5.0)
        async with working(ground, ScriptedRunner(crowd), packed(tmp_path, obstacle=brake)):
            await ground.store.workers.several_beats()
            [row] = await ground.store.workers.all()
            assert "nothing new starts" in row.paused and await ended(ground) == 0
            meter.available_percent = 60
            async with asyncio.timeout(LIMIT_SEC):
                while await ended(ground) < 3:
                    await asyncio.sleep(0.01)
