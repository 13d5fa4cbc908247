"""A lease that ran out proves a worker's death only if the worker could have renewed it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from seatrial.adapters.wake_up_local import LocalWakeUp
from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Outcome, TrialState
from seatrial.engine.clock import StoreClock
from seatrial.engine.trials.recover import LeaseTrust, Recovery
from seatrial.errors import StoreUnavailable
from seatrial.testing.faulty_store import FaultyStore

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TASK = Task(digest="sha256:" + "0" * 64, name="answer-file", format=TaskFormat.HARBOR, instruction="Do it.")
LEASE_SEC, HEARTBEAT_SEC, REAP_SEC = 30.0, 5.0, 10.0
AWAY = StoreUnavailable("Away.")


class Scene:
    """One trial of a worker that is called ``w``, a reaper, and time that a test moves on."""

    def __init__(self, folder: Path) -> None:
        self.store = FaultyStore()
        self.uptime, self.ahead = 1000.0, 0.0
        self.trust = LeaseTrust(LEASE_SEC, HEARTBEAT_SEC, REAP_SEC, elapsed=lambda: self.uptime)
        self.recovery = Recovery(self.store, LocalWakeUp(folder), self.clock, lambda name: name == "dead", self.trust)

    def clock(self) -> datetime:
        return NOON + timedelta(seconds=self.uptime + self.ahead)

    async def begin(self, worker: str = "w") -> None:
        await self.store.tasks.save(TASK, self.clock())
        refs = (TaskRef(name=TASK.name, digest=TASK.digest),)
        spec = JobSpec(tasks=refs, agents=(AgentSpec(name="oracle"),))
        await self.store.jobs.create(spec, tuple(plan(spec)), self.clock())
        await self.store.trials.claim(worker, timedelta(seconds=LEASE_SEC), 1, self.clock())

    async def renew(self) -> None:
        await self.store.trials.renew("w", {1: 1}, timedelta(seconds=LEASE_SEC), self.clock())

    async def pass_time(self, seconds: float, *, renewing: bool = False) -> int:
        """Sweeps as often as a worker does; says how many trials were recovered."""
        recovered = 0
        end = self.uptime + seconds
        while self.uptime < end:
            self.uptime = min(self.uptime + REAP_SEC, end)
            if renewing:
                await self.renew()
            recovered += await self.recovery.sweep()
        return recovered

    @property
    def state(self) -> TrialState:
        return self.store.records.trials[1].state


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    await scene.begin()
    assert await scene.pass_time(60, renewing=True) == 0
    return scene


async def test_a_worker_that_stays_silent_is_lost_when_its_lease_is_over(scene: Scene) -> None:
    assert await scene.pass_time(LEASE_SEC) == 0
    assert await scene.pass_time(REAP_SEC) == 1 and scene.state is TrialState.QUEUED


@pytest.mark.parametrize("noticed_by", ["the reaper", "a heartbeat", "nobody"])
async def test_after_an_outage_workers_renew_before_anybody_reaps(scene: Scene, noticed_by: str) -> None:
    """The store is away for longer than a lease. ``nobody``: it hangs, and each question is answered in the end."""
    if noticed_by == "the reaper":
        scene.store.faults["trials.expired"] = AWAY
        with pytest.raises(StoreUnavailable):
            await scene.recovery.sweep()
        scene.store.faults.clear()
    elif noticed_by == "a heartbeat":
        scene.recovery.noticed(AWAY)
    scene.uptime += 45
    assert await scene.recovery.sweep() == 0, "the reaper comes first, and waits"
    await scene.renew()
    assert await scene.pass_time(120, renewing=True) == 0
    assert scene.state is TrialState.RUNNING and scene.store.records.trials[1].try_number == 1


async def test_a_worker_that_died_in_the_outage_is_lost_a_lease_later(scene: Scene) -> None:
    scene.recovery.noticed(AWAY)
    scene.uptime += 45
    assert await scene.pass_time(LEASE_SEC) == 0
    assert await scene.pass_time(2 * REAP_SEC) == 1 and scene.state is TrialState.QUEUED


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_clock_that_was_set_kills_nobody(scene: Scene, hours: int) -> None:
    scene.ahead += 3600 * hours
    assert await scene.recovery.sweep() == 0
    await scene.renew()
    assert await scene.pass_time(120, renewing=True) == 0 and scene.state is TrialState.RUNNING


async def test_a_machine_that_slept_kills_nobody(scene: Scene) -> None:
    scene.uptime += 8 * 3600
    assert await scene.recovery.sweep() == 0
    assert await scene.pass_time(120, renewing=True) == 0 and scene.state is TrialState.RUNNING


async def test_a_reaper_that_begins_waits_too(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    await scene.begin()
    scene.uptime += 3600
    assert await scene.recovery.sweep() == 0
    assert await scene.pass_time(LEASE_SEC + HEARTBEAT_SEC) == 1


async def test_a_worker_that_is_known_to_be_dead_is_not_waited_for(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    await scene.begin("dead")
    assert await scene.recovery.sweep() == 1 and scene.state is TrialState.QUEUED


async def test_a_cancelled_trial_ends_as_soon_as_its_lease_is_over(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    await scene.begin()
    await scene.store.jobs.cancel(1, scene.clock())
    assert await scene.recovery.sweep() == 0, "its worker may still stop it"
    scene.uptime += LEASE_SEC + 1
    assert await scene.recovery.sweep() == 1
    assert scene.store.records.trials[1].outcome is Outcome.CANCELLED


async def test_the_stores_clock_goes_on_whatever_happens_to_the_machines() -> None:
    wall, uptime = [NOON], [50.0]
    clock = StoreClock(lambda: wall[0], lambda: uptime[0])
    assert clock() == NOON

    async def told() -> datetime:
        uptime[0] += 2  # it takes a second there and a second back
        return NOON + timedelta(hours=1)

    await clock.look(told)
    assert clock() == NOON + timedelta(hours=1, seconds=1)
    wall[0] += timedelta(days=3)
    uptime[0] += 10
    assert clock() == NOON + timedelta(hours=1, seconds=11)

    async def none() -> None:
        return None

    await clock.look(none)
    assert clock() == wall[0], "a store without a clock leaves it to the machine"
