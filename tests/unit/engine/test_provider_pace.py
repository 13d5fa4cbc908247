"""Trials of several workers against a provider with a real capacity, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from seatrial.domain.model_calls.provider_pace import PaceGrant, PaceReport
from seatrial.engine.provider_pace import EVERY_SEC, ProviderPace
from seatrial.errors import StoreUnavailable
from seatrial.testing.memory_store.pace import MemoryPace
from tests.virtual_time import run_virtual, virtual_clock

MODEL = "openai/slow 1234"


@dataclass
class Provider:
    """Refuses what is beyond its capacity, and asks to wait."""

    capacity: int
    seconds: float = 2.0
    retry_after: float | None = 5.0
    in_flight: int = 0
    answered: int = 0
    refused: int = 0
    served: dict[str, int] = field(default_factory=dict)

    async def call(self, pace: ProviderPace | None, who: str = "") -> bool:
        turn = await pace.take(MODEL) if pace is not None else None
        try:
            if self.in_flight >= self.capacity:
                self.refused += 1
                await asyncio.sleep(0.05)
                if turn is not None:
                    turn.refused(self.retry_after)
                return False
            self.in_flight += 1
            try:
                await asyncio.sleep(self.seconds)
            finally:
                self.in_flight -= 1
            self.answered += 1
            self.served[who] = self.served.get(who, 0) + 1
            if turn is not None:
                turn.answered()
            return True
        finally:
            if turn is not None:
                turn.end()


@dataclass
class Fleet:
    store: MemoryPace
    workers: list[ProviderPace]
    syncing: list[asyncio.Task[None]]


@asynccontextmanager
async def fleet(workers: int, store: Any = None) -> Any:
    store = store or MemoryPace()
    paces = [ProviderPace(store, f"worker-{number}", virtual_clock) for number in range(workers)]

    async def sync(pace: ProviderPace, offset: float) -> None:
        await asyncio.sleep(offset)
        while True:
            with suppress(StoreUnavailable):
                await pace.sync()
            await asyncio.sleep(EVERY_SEC)

    syncing = [asyncio.create_task(sync(pace, number / len(paces))) for number, pace in enumerate(paces)]
    try:
        yield Fleet(store, paces, syncing)
    finally:
        for task in syncing:
            task.cancel()


async def trial(provider: Provider, pace: ProviderPace | None, calls: int, patience: int, who: str = "") -> bool:
    """An agent that makes calls, and gives up when one was refused too often in a row."""
    for _ in range(calls):
        for _ in range(patience):
            if await provider.call(pace, who):
                break
            if pace is None:
                await asyncio.sleep(provider.retry_after or 1.0)
        else:
            return False
    return True


async def all_of(jobs: list[Awaitable[bool]]) -> int:
    return sum(await asyncio.gather(*jobs))


@pytest.mark.parametrize("workers", [1, 4])
def test_five_hundred_trials_finish_at_a_slow_provider(workers: int) -> None:
    async def play(paced: bool) -> tuple[int, Provider, float]:
        provider = Provider(capacity=20)
        async with fleet(workers) as ground:
            paces = ground.workers if paced else [None]
            jobs = [trial(provider, paces[number % len(paces)], 5, patience=6) for number in range(500)]
            return await all_of(jobs), provider, asyncio.get_running_loop().time()

    finished, provider, took = run_virtual(play(True))
    assert finished == 500
    assert provider.refused < 700, "the first burst is refused, and little more"
    least = 500 * 5 * provider.seconds / provider.capacity
    assert took < 2.5 * least
    without, crowded, _ = run_virtual(play(False))
    assert without < 250, "without the pace most give up"
    assert crowded.refused > 3 * provider.refused


def test_the_limit_settles_at_the_capacity() -> None:
    async def play() -> tuple[list[float], float]:
        provider = Provider(capacity=20, retry_after=1.0)
        async with fleet(2) as ground:
            jobs = [asyncio.create_task(trial(provider, ground.workers[n % 2], 1000, 50)) for n in range(100)]
            limits = []
            for _ in range(300):
                await asyncio.sleep(1.0)
                limits.append(ground.store.states[MODEL].limit or 0.0)
            share = provider.answered * provider.seconds / (provider.capacity * 300)
            for job in jobs:
                job.cancel()
            return limits, share

    limits, share = run_virtual(play())
    assert all(10 <= limit <= 30 for limit in limits[60:]), limits
    assert share > 0.6, "most of what the provider could do is used"


def test_a_provider_that_speeds_up_is_used() -> None:
    async def play() -> tuple[float, float]:
        provider = Provider(capacity=5, retry_after=1.0)
        async with fleet(2) as ground:
            jobs = [asyncio.create_task(trial(provider, ground.workers[n % 2], 10_000, 500)) for n in range(200)]
            await asyncio.sleep(120)
            slow = ground.store.states[MODEL].limit
            provider.capacity = 1000
            await asyncio.sleep(240)
            fast = ground.store.states[MODEL].limit
            for job in jobs:
                job.cancel()
            return slow, fast

    slow, fast = run_virtual(play())
    assert slow < 10 and fast > 100


def test_retry_after_stops_everybody() -> None:
    async def play() -> list[float]:
        started: list[float] = []
        async with fleet(2) as ground:
            first, second = ground.workers
            turns = [await second.take(MODEL) for _ in range(4)]
            turn = await first.take(MODEL)
            turn.refused(30.0)
            turn.end()
            await asyncio.sleep(3 * EVERY_SEC)
            for held in turns:
                held.end()

            async def call(pace: ProviderPace) -> None:
                held = await pace.take(MODEL)
                started.append(asyncio.get_running_loop().time())
                held.end()

            await asyncio.gather(*(call(pace) for pace in (first, second) for _ in range(3)))
        return started

    assert min(run_virtual(play())) >= 29.0


def test_a_pause_without_end_is_cut() -> None:
    async def play() -> float:
        async with fleet(1) as ground:
            [pace] = ground.workers
            turn = await pace.take(MODEL)
            turn.refused(1e9)
            turn.end()
            (await pace.take(MODEL)).end()
            return asyncio.get_running_loop().time()

    assert run_virtual(play()) < 700


def test_workers_share_by_what_they_need() -> None:
    async def play() -> Provider:
        provider = Provider(capacity=12, retry_after=1.0)
        async with fleet(3) as ground:
            jobs = [
                asyncio.create_task(trial(provider, pace, 1000, 500, f"{number}"))
                for number, (pace, trials) in enumerate(zip(ground.workers, (60, 20, 2), strict=True))
                for _ in range(trials)
            ]
            await asyncio.sleep(400)
            for job in jobs:
                job.cancel()
        return provider

    served = run_virtual(play()).served
    assert served["0"] / 60 < 3 * served["1"] / 20 and served["1"] / 20 < 3 * served["0"] / 60
    assert served["2"] > 20, "nobody is forgotten"


def test_one_slot_goes_round() -> None:
    async def play() -> Provider:
        provider = Provider(capacity=1, seconds=0.5, retry_after=1.0)
        async with fleet(4) as ground:
            jobs = [
                asyncio.create_task(trial(provider, pace, 1000, 500, f"{number}"))
                for number, pace in enumerate(ground.workers)
                for _ in range(5)
            ]
            await asyncio.sleep(300)
            for job in jobs:
                job.cancel()
        return provider

    served = run_virtual(play()).served
    assert len(served) == 4 and min(served.values()) * 4 > max(served.values())


def test_the_slots_of_a_dead_worker_come_back() -> None:
    async def play() -> tuple[int, int, int]:
        async with fleet(2) as ground:
            dead, alive = ground.workers
            (await alive.take(MODEL)).end()
            turns = [await dead.take(MODEL) for _ in range(10)]
            turns[0].refused(1.0)
            turns[0].end()
            await asyncio.sleep(3)
            jobs = [asyncio.create_task(alive.take(MODEL)) for _ in range(20)]
            await asyncio.sleep(5)
            beside = sum(job.done() for job in jobs)
            ground.syncing[0].cancel()  # it dies with nine calls in flight
            await asyncio.sleep(30)
            let_in = sum(job.done() for job in jobs)
            for job in jobs:
                job.cancel()
            return beside, let_in, int(ground.store.states[MODEL].limit)

    beside, let_in, limit = run_virtual(play())
    assert (beside, let_in) == (0, limit), "nothing beside a worker that holds all, and all of it afterwards"


def test_without_a_refusal_nothing_waits_and_the_store_is_asked_once_a_second() -> None:
    async def play() -> tuple[int, float]:
        provider = Provider(capacity=10_000, seconds=0.5)
        async with fleet(1) as ground:
            await all_of([trial(provider, ground.workers[0], 10, 1) for _ in range(200)])
            return ground.store.exchanges, asyncio.get_running_loop().time()

    exchanges, took = run_virtual(play())
    assert took == pytest.approx(5.0) and exchanges <= 7, "2,000 calls"


def test_a_store_that_is_away_stops_no_call() -> None:
    class Away(MemoryPace):
        away = False

        async def exchange(
            self, worker: str, reports: Mapping[str, PaceReport], lease: timedelta, now: datetime
        ) -> dict[str, PaceGrant]:
            if self.away:
                raise StoreUnavailable
            return await super().exchange(worker, reports, lease, now)

    async def play() -> tuple[int, float | None]:
        provider, store = Provider(capacity=5, retry_after=1.0), Away()
        store.away = True
        async with fleet(1, store) as ground:
            finished = await all_of([trial(provider, ground.workers[0], 3, 20) for _ in range(30)])
            store.away = False
            await asyncio.sleep(2)
            return finished, store.states[MODEL].limit

    finished, learned = run_virtual(play())
    assert finished == 30
    assert learned is not None, "what was learned meanwhile is told"


def test_cancelled_calls_leave_the_line() -> None:
    async def play() -> tuple[int, bool]:
        async with fleet(1) as ground:
            [pace] = ground.workers
            turn = await pace.take(MODEL)
            other = await pace.take(MODEL)
            turn.refused(0.0)
            turn.end()
            lines = [asyncio.create_task(pace.take(MODEL)) for _ in range(50)]
            await asyncio.sleep(0.1)
            for line in lines:
                line.cancel()
            await asyncio.gather(*lines, return_exceptions=True)
            other.end()
            (await pace.take(MODEL)).end()
            return pace._lanes[MODEL].in_flight, True

    assert run_virtual(play()) == (0, True)


def test_a_call_that_is_cancelled_while_another_ends_disturbs_neither() -> None:
    """Both happen in one turn of the loop, before the cancelled call could leave the line."""

    async def play() -> tuple[bool, int]:
        async with fleet(1) as ground:
            [pace] = ground.workers
            turn = await pace.take(MODEL)
            turn.refused(None)
            line = asyncio.create_task(pace.take(MODEL))
            await asyncio.sleep(0)
            line.cancel()
            turn.end()
            await asyncio.gather(line, return_exceptions=True)
            return line.cancelled(), pace._lanes[MODEL].in_flight

    assert run_virtual(play()) == (True, 0)


def test_a_limit_that_nobody_needs_is_forgotten() -> None:
    async def play() -> tuple[float | None, float | None]:
        async with fleet(1) as ground:
            [pace] = ground.workers
            turns = [await pace.take(MODEL) for _ in range(10)]
            turns[0].refused(1.0)
            for turn in turns:
                turn.end()
            await asyncio.sleep(3)
            before = ground.store.states[MODEL].limit
            for _ in range(80):
                held = await pace.take(MODEL)
                await asyncio.sleep(10)
                held.answered()
                held.end()
            return before, ground.store.states[MODEL].limit

    before, after = run_virtual(play())
    assert before is not None and after is None
