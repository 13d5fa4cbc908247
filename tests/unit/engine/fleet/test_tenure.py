"""Protection before claims, release when idle, and idle workers that leave."""

from __future__ import annotations

from datetime import timedelta

import pytest

from seatrial.engine.fleet.tenure import StayRules, Tenure
from seatrial.errors import ProtectionRefused, ServiceUnavailable
from seatrial.ports.store import Heartbeat
from seatrial.testing.fake_platform import FakePlatform
from seatrial.testing.memory_store import MemoryStore
from tests.contracts.store.samples import NOON, submit


class Scene:
    """A worker's tenure with a clock that stands still until it is moved."""

    def __init__(self, renew_sec: float | None = None, **rules: float) -> None:
        self.now = 0.0
        self.store = MemoryStore()
        self.platform = FakePlatform()
        self.machine = self.platform.add("m", renew_sec)
        self.tenure = self.of("w", **rules)

    def of(self, worker: str, **rules: float) -> Tenure:
        stay = StayRules(**rules)  # type: ignore[arg-type]
        return Tenure(worker, self.store, lambda: NOON, stay, self.machine, elapsed=lambda: self.now)

    async def beat(self, *workers: str) -> None:
        for worker in workers:
            about = Heartbeat(worker=worker, host="here", pid=1, capacity=1, started_at=NOON)
            await self.store.workers.beat(about, NOON)


async def test_the_machine_is_protected_before_a_claim_and_only_if_something_waits() -> None:
    scene = Scene()
    assert not await scene.tenure.may_claim(0)
    assert scene.platform.calls == []
    await submit(scene.store)
    assert await scene.tenure.may_claim(0)
    assert await scene.tenure.may_claim(1)
    assert scene.platform.calls == [("m", "protect")], "one call for all claims"
    assert scene.platform.protected == {"m": True}


@pytest.mark.parametrize("trouble", ["refuses", "is_away"])
async def test_without_a_confirmed_protection_nothing_is_claimed(trouble: str) -> None:
    scene = Scene()
    await submit(scene.store)
    setattr(scene.platform, trouble, True)
    for _ in range(2):
        with pytest.raises((ProtectionRefused, ServiceUnavailable)):
            await scene.tenure.may_claim(0)
    setattr(scene.platform, trouble, False)
    assert await scene.tenure.may_claim(0)


async def test_an_idle_machine_is_released_after_a_while_and_a_busy_one_is_not() -> None:
    scene = Scene(release_after_sec=30)
    await submit(scene.store)
    await scene.tenure.may_claim(0)
    await scene.store.trials.claim("w", timedelta(minutes=1), 1, NOON)
    scene.tenure.works()
    scene.now = 100
    assert not await scene.tenure.should_leave(1)
    assert scene.platform.protected == {"m": True}
    assert not await scene.tenure.should_leave(0)
    scene.now = 129
    await scene.tenure.should_leave(0)
    assert scene.platform.protected == {"m": True}, "it was idle for 29 s only"
    scene.now = 130
    await scene.tenure.should_leave(0)
    assert scene.platform.protected == {"m": False}


async def test_a_protection_stays_while_something_waits_that_others_may_claim() -> None:
    scene = Scene(release_after_sec=0)
    await submit(scene.store)
    await scene.tenure.may_claim(0)
    await scene.tenure.should_leave(0)
    assert scene.platform.calls == [("m", "protect")]


async def test_what_an_earlier_process_left_protected_is_released() -> None:
    scene = Scene(release_after_sec=30)
    scene.platform.protected["m"] = True
    await scene.tenure.should_leave(0)
    scene.now = 30
    await scene.tenure.should_leave(0)
    assert scene.platform.protected == {"m": False}
    scene.now = 90
    await scene.tenure.should_leave(0)
    assert scene.platform.calls == [("m", "release")], "once"


async def test_a_protection_that_expires_is_renewed_while_it_is_needed() -> None:
    scene = Scene(renew_sec=60, release_after_sec=0)
    await scene.tenure.renew()
    assert scene.platform.calls == []
    await submit(scene.store)
    await scene.tenure.may_claim(0)
    scene.now = 59
    await scene.tenure.renew()
    assert len(scene.platform.calls) == 1
    scene.now = 60
    await scene.tenure.renew()
    assert len(scene.platform.calls) == 2
    scene.now, scene.platform.is_away = 120, True
    with pytest.raises(ServiceUnavailable):
        await scene.tenure.renew()
    with pytest.raises(ServiceUnavailable):
        await scene.tenure.may_claim(1)
    scene.platform.is_away = False
    await scene.tenure.renew()
    assert await scene.tenure.may_claim(1)
    await scene.tenure.release()
    scene.now = 500
    calls = len(scene.platform.calls)
    await scene.tenure.renew()
    assert len(scene.platform.calls) == calls


async def test_an_idle_worker_leaves_after_its_time_if_enough_stay() -> None:
    scene = Scene(leave_when_idle_sec=600, minimum_workers=1)
    await scene.beat("w", "other")
    assert not await scene.tenure.should_leave(0)
    scene.now = 599
    assert not await scene.tenure.should_leave(0)
    scene.tenure.works()
    scene.now = 700
    assert not await scene.tenure.should_leave(0), "it worked meanwhile"
    scene.now = 1300
    assert await scene.tenure.should_leave(0)
    other = scene.of("other", leave_when_idle_sec=600)
    await other.should_leave(0)
    scene.now = 3000
    assert not await other.should_leave(0), "one stays"
    await scene.beat("third")
    scene.now = 3010
    assert not await other.should_leave(0), "it does not ask all the time"
    scene.now = 3030
    assert await other.should_leave(0)


async def test_without_the_setting_a_worker_stays() -> None:
    scene = Scene()
    await scene.beat("w", "other")
    await scene.tenure.should_leave(0)
    scene.now = 1e9
    assert not await scene.tenure.should_leave(0)
