"""Trials of several workers that race for the same money, in simulated time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from seatrial.domain.model_calls.budget import Amount, Budget, Cap, Scope
from seatrial.domain.model_calls.budget_slices import SliceGrant, SliceReport
from seatrial.engine.budgets.slices import EVERY_SEC, Budgets
from seatrial.engine.budgets.trial_budget import BudgetUnknown, Refused, Reservation, TrialBudget
from seatrial.engine.clock import Clock
from seatrial.errors import StoreUnavailable
from seatrial.testing.memory_store.budgets import MemoryBudgets
from tests.virtual_time import run_virtual, virtual_clock

LEASE = timedelta(seconds=20)
JOB = 7


def usd(dollars: float, tokens: int = 0) -> Amount:
    return Amount.of(dollars, tokens, 1)


def loop_time() -> float:
    return asyncio.get_running_loop().time()


class BudgetsAway(MemoryBudgets):
    """A store that may not answer."""

    is_away = False

    async def exchange(self, reports: Sequence[SliceReport], lease: timedelta, now: datetime) -> dict[str, SliceGrant]:
        if self.is_away:
            raise StoreUnavailable("The store is away.")
        return await super().exchange(reports, lease, now)


@dataclass
class Fleet:
    store: BudgetsAway
    workers: list[Budgets]
    syncing: list[asyncio.Task[None]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 10_000)))

    def kill(self, worker: int) -> None:
        self.syncing[worker].cancel()

    @contextmanager
    def trial(
        self, worker: int = 0, budget: Budget | None = None, number: int | None = None, try_number: int = 1
    ) -> Iterator[TrialBudget]:
        number = number or next(self.numbers)
        with TrialBudget(self.workers[worker], number, try_number, JOB, budget or Budget()) as opened:
            yield opened

    async def spent(self, scope: Scope | None = None) -> Amount:
        for worker, task in zip(self.workers, self.syncing, strict=True):
            if not task.cancelled() and not task.cancelling():
                await worker.sync()
        scope = scope or Scope.of_job(JOB)
        return (await self.store.spending([scope]))[scope.name].spent


@asynccontextmanager
async def fleet(workers: int = 1, day: Cap | None = None, clock: Clock = virtual_clock) -> AsyncIterator[Fleet]:
    store = BudgetsAway()
    made = [Budgets(store, f"w{n}", clock, LEASE, day or Cap(), loop_time) for n in range(workers)]

    async def sync(budgets: Budgets, offset: float) -> None:
        await asyncio.sleep(offset)
        while True:
            with suppress(StoreUnavailable):
                await budgets.sync()
            await asyncio.sleep(EVERY_SEC)

    syncing = [asyncio.create_task(sync(each, number / workers)) for number, each in enumerate(made)]
    try:
        yield Fleet(store, made, syncing)
    finally:
        for task in syncing:
            task.cancel()


async def granted(budget: TrialBudget, expected: Amount, **more: Amount) -> Reservation:
    found = await budget.reserve(expected, **more)
    assert isinstance(found, Reservation), found
    return found


JOB_OF_10 = Budget(job=Cap(dollars=10.0))


@pytest.mark.parametrize("workers", [1, 5])
@pytest.mark.parametrize("seed", range(3))
def test_fifty_racing_trials_stay_within_the_jobs_budget(workers: int, seed: int) -> None:
    """Calls may cost up to fifty times what was expected, as when an agent asks for 64k tokens and uses 800."""
    chance = random.Random(seed)
    prices: list[Amount] = []
    ends: list[Refused] = []

    async def agent(ground: Fleet, number: int) -> None:
        with ground.trial(number % workers, JOB_OF_10) as budget:
            while True:
                call = await budget.reserve(usd(0.02), least=usd(0.01), most=usd(1.0))
                if isinstance(call, Refused):
                    ends.append(call)
                    return
                await asyncio.sleep(chance.uniform(0.5, 20.0))
                price = usd(min(call.most.dollars, chance.choice([0.01, 0.02, 0.03, 0.5, 1.0])))
                prices.append(price)
                call.settle(price)

    async def play() -> tuple[Amount, float]:
        async with fleet(workers) as ground:
            await asyncio.gather(*(agent(ground, number) for number in range(50)))
            return await ground.spent(), loop_time()

    counted, took = run_virtual(play())
    assert took < 300, "nobody waits for what cannot come"
    total = sum(price.dollars for price in prices)
    assert total <= 10.0 and total > 10.0 - 0.02, "all of it is spent, and nothing more"
    assert counted.dollars == pytest.approx(total) and counted.calls == len(prices)
    assert len(ends) == 50 and {end.kind for end in ends} == {"job"}


def test_a_price_above_what_was_reserved_is_counted_and_ends_the_race() -> None:
    """A provider that charges more than the call was allowed: no further call begins."""

    async def play() -> tuple[Amount, object]:
        async with fleet() as ground:
            with ground.trial(budget=JOB_OF_10) as budget:
                (await granted(budget, usd(1.0))).settle(usd(11.0))
                return await ground.spent(), await budget.reserve(usd(0.01))

    counted, after = run_virtual(play())
    assert counted.dollars == 11.0 and isinstance(after, Refused) and after.kind == "job"


def test_calls_do_not_ask_the_store_while_the_slice_lasts() -> None:
    async def play() -> tuple[int, float]:
        async with fleet() as ground:
            with ground.trial(budget=Budget(job=Cap(dollars=1000.0), trial=Cap(calls=5000))) as budget:
                began = loop_time()
                for _ in range(1000):
                    (await granted(budget, usd(0.01))).settle(usd(0.01))
                assert loop_time() == began, "no call waited"
                at_once = ground.store.exchanges
                await asyncio.sleep(5)
                return at_once, ground.store.exchanges - at_once

    at_once, later = run_virtual(play())
    assert at_once <= 2 and 0 < later <= 6


def test_large_limits_of_output_do_not_pin_a_budget() -> None:
    """Worst-case reservation would let two of these calls begin, and refuse the rest."""

    async def play() -> tuple[int, float]:
        async with fleet(2) as ground:
            done = 0

            async def agent(number: int) -> None:
                nonlocal done
                with ground.trial(number % 2, JOB_OF_10) as budget:
                    call = await granted(budget, usd(0.02), most=usd(5.0))
                    await asyncio.sleep(10)
                    call.settle(usd(0.02))
                    done += 1

            await asyncio.gather(*(agent(number) for number in range(40)))
            return done, loop_time()

    done, took = run_virtual(play())
    assert done == 40 and took < 60, "nearly all at once"


def test_output_is_clamped_near_the_cap_and_not_far_from_it() -> None:
    async def play() -> list[float]:
        async with fleet() as ground:
            with ground.trial(budget=Budget(trial=Cap(dollars=1.0))) as budget:
                far = await granted(budget, usd(0.1), least=usd(0.01), most=usd(0.6))
                far.settle(usd(0.6))
                near = await granted(budget, usd(0.1), least=usd(0.01), most=usd(0.6))
                near.settle(usd(0.35))
                last = await granted(budget, usd(0.1), least=usd(0.01), most=usd(0.6))
                last.settle(usd(0.05))
                assert isinstance(await budget.reserve(usd(0.1), least=usd(0.01)), Refused)
                assert budget.refused is not None and budget.refused.kind == "trial"
                return [call.most.dollars for call in (far, near, last)]

    assert run_virtual(play()) == [0.6, 0.4, 0.05]


def test_a_stream_goes_on_while_there_is_room_and_is_cut_at_the_cap() -> None:
    async def play() -> None:
        async with fleet() as ground:
            with ground.trial(budget=Budget(trial=Cap(dollars=1.0))) as budget:
                stream = await granted(budget, usd(0.1))
                assert all(stream.stretch(Amount.of(cents / 100)) for cents in range(101))
                assert budget.refused is None
                assert not stream.stretch(Amount.of(1.01))
                assert budget.refused is not None and budget.refused.kind == "trial"
                stream.settle(usd(1.0))
                assert (await ground.spent(Scope.of_trial(JOB, budget.trial_id))).dollars == 1.0

    run_virtual(play())


def test_the_slice_of_a_dead_worker_comes_back_with_its_lease() -> None:
    async def play() -> float:
        async with fleet(2) as ground:
            with ground.trial(0, JOB_OF_10) as dying, ground.trial(1, JOB_OF_10) as living:
                (await granted(dying, usd(1.0))).settle(usd(1.0))
                await granted(dying, usd(2.0), most=usd(4.0))
                await asyncio.sleep(2)
                ground.kill(0)
                died = loop_time()
                call = await granted(living, usd(6.9))
                assert loop_time() - died < LEASE.total_seconds() + 2
                call.settle(usd(6.9))
                assert (await ground.spent()).dollars == pytest.approx(9.9), "its call under way counts as expected"
                return (await granted(living, usd(0.1))).most.dollars

    assert run_virtual(play()) == 0.1


def test_a_worker_that_is_presumed_dead_cannot_spend_its_old_slice() -> None:
    """It was stopped, and another worker has its slice by now. Nobody told it."""

    async def play() -> None:
        async with fleet(2) as ground:
            with ground.trial(0, JOB_OF_10) as stopped, ground.trial(1, JOB_OF_10) as other:
                stream = await granted(stopped, usd(0.5))
                (await granted(stopped, usd(0.01))).settle(usd(0.01))
                await asyncio.sleep(2)
                ground.kill(0)
                await asyncio.sleep(LEASE.total_seconds() + 1)
                (await granted(other, usd(9.4))).settle(usd(9.4))
                await ground.workers[1].sync()
                ground.store.is_away = True
                with pytest.raises(BudgetUnknown):  # beyond its own reservation
                    stream.stretch(usd(0.8))
                assert stopped.refused is None, "no cap is known to be spent"
                refused = await stopped.reserve(usd(0.2), patience_sec=3)
                assert isinstance(refused, Refused) and not refused.is_spent and "in 3 s" in refused.message
                ground.store.is_away = False
                stream.settle(usd(0.5))
                refused = await stopped.reserve(usd(0.2))
                assert isinstance(refused, Refused) and refused.is_spent and stopped.refused == refused
                await ground.workers[0].sync()
                assert (await ground.spent()).dollars == pytest.approx(9.91)
                assert (await granted(stopped, usd(0.09))).most.dollars == 0.09, "what is left, it may have"

    run_virtual(play())


def test_calls_with_a_cap_wait_for_a_store_that_is_away() -> None:
    async def play() -> tuple[float, float]:
        async with fleet() as ground:
            ground.store.is_away = True
            with ground.trial(budget=JOB_OF_10) as capped:
                with TrialBudget(ground.workers[0], 99, 1, JOB + 1, Budget()) as free:
                    (await granted(free, usd(1.0))).settle(usd(1.0))
                without = loop_time()
                asyncio.get_running_loop().call_later(30, setattr, ground.store, "is_away", False)
                await granted(capped, usd(1.0))
                return without, loop_time()

    without, capped = run_virtual(play())
    assert without == 0 and 30 <= capped < 32


def test_what_was_spent_during_an_outage_is_not_given_to_others() -> None:
    """Nobody could report for longer than a lease. The first to come back does not take the slices of the others."""

    async def play() -> float:
        async with fleet(2) as ground:
            with ground.trial(0, JOB_OF_10) as one, ground.trial(1, JOB_OF_10) as two:
                await granted(one, usd(0.01))
                for _ in range(3):
                    (await granted(two, usd(0.01))).settle(usd(0.01))
                    await asyncio.sleep(2)
                ground.store.is_away = True
                (await granted(two, usd(2.0))).settle(usd(2.0))
                await asyncio.sleep(3 * LEASE.total_seconds())
                ground.store.is_away = False
                await ground.workers[0].sync()
                call = await granted(one, usd(7.9))
                call.settle(usd(7.9))
                return (await ground.spent()).dollars

    assert run_virtual(play()) <= 10.0


def test_a_trials_cap_holds_over_its_tries_on_any_worker() -> None:
    budget = Budget(trial=Cap(calls=3))

    async def play() -> None:
        async with fleet(2) as ground:
            with ground.trial(0, budget, number=5) as first:
                (await granted(first, usd(0.1))).settle(usd(0.1))
                await granted(first, usd(0.1))
            await ground.workers[0].sync()
            with ground.trial(1, budget, number=5, try_number=2) as second:
                (await granted(second, usd(0.1))).settle(usd(0.1))
                assert isinstance(await second.reserve(usd(0.1)), Refused)
            with ground.trial(1, budget, number=6) as another:
                await granted(another, usd(0.1))

    run_virtual(play())


def test_a_try_after_a_lost_worker_does_not_wait_for_a_lease() -> None:
    budget = Budget(trial=Cap(calls=3))

    async def play() -> None:
        async with fleet(2) as ground:
            with ground.trial(0, budget, number=5) as lost:
                (await granted(lost, usd(0.1))).settle(usd(0.1))
                await granted(lost, usd(0.1))
                await ground.workers[0].sync()
                ground.kill(0)
                with ground.trial(1, budget, number=5, try_number=2) as again:
                    began = loop_time()
                    (await granted(again, usd(0.1))).settle(usd(0.1))
                    assert loop_time() == began
                    assert isinstance(await again.reserve(usd(0.1)), Refused), "the call under way was counted"

    run_virtual(play())


def test_a_try_that_was_replaced_begins_no_call_and_leaves_the_new_one_alone() -> None:
    budget = Budget(trial=Cap(calls=10))

    async def play() -> None:
        async with fleet(2) as ground:
            with ground.trial(0, budget, 5) as old, ground.trial(1, budget, 5, try_number=2) as new:
                last = await granted(old, usd(0.1))
                await asyncio.sleep(2)
                (await granted(new, usd(0.1))).settle(usd(0.1))
                await asyncio.sleep(2)
                assert isinstance(await old.reserve(usd(0.1)), Refused)
                last.settle(usd(0.1))
                for _ in range(8):
                    (await granted(new, usd(0.1))).settle(usd(0.1))
                    await asyncio.sleep(2)
                assert isinstance(await new.reserve(usd(0.1)), Refused)
            assert (await ground.spent(Scope.of_trial(JOB, 5))).calls == 10

    run_virtual(play())


def test_the_days_cap_holds_for_all_jobs_and_ends_at_midnight() -> None:
    def evening() -> datetime:
        return virtual_clock() + timedelta(hours=23, minutes=59)

    async def play() -> None:
        async with fleet(2, Cap(calls=4), evening) as ground:
            for worker, job in ((0, 1), (1, 2)):
                with TrialBudget(ground.workers[worker], job, 1, job, Budget()) as budget:
                    for _ in range(2):
                        (await granted(budget, usd(0.1))).settle(usd(0.1))
                    await ground.workers[worker].sync()
            with TrialBudget(ground.workers[0], 3, 1, 3, Budget()) as late:
                refused = await late.reserve(usd(0.1))
                assert isinstance(refused, Refused) and refused.kind == "day" and "today" in refused.message
                with TrialBudget(ground.workers[0], 4, 1, 4, Budget(), False) as unpaid:
                    await granted(unpaid, usd(0.1))
                assert (await ground.spent(Scope.of_day(evening()))).calls == 4
                await asyncio.sleep(120)
                (await granted(late, usd(0.1))).settle(usd(0.1))
                assert (await ground.spent(Scope.of_day(evening()))).calls == 1

    run_virtual(play())


def test_nothing_is_left_behind_by_calls_that_end_in_any_way() -> None:
    async def play() -> None:
        async with fleet() as ground:
            with ground.trial(budget=JOB_OF_10) as budget:
                (await granted(budget, usd(3.0))).release()
                broken = await granted(budget, usd(1.0))
                broken.settle_unknown()
                broken.settle(usd(5.0))
                with pytest.raises(ZeroDivisionError), await granted(budget, usd(1.0)):
                    raise ZeroDivisionError
                stream = await granted(budget, usd(1.0), most=usd(4.0))
                stream.stretch(usd(2.0))
                stream.settle_unknown()
                await granted(budget, usd(1.0))  # and its try ends
                waiting = asyncio.create_task(budget.reserve(usd(5.5)))
                await asyncio.sleep(0.1)
                waiting.cancel()
                await asyncio.wait([waiting])
            assert (await ground.spent()).dollars == 5.0
            with ground.trial(budget=JOB_OF_10) as after:
                assert (await granted(after, usd(5.0))).most.dollars == 5.0

    run_virtual(play())


def test_a_call_that_waits_when_its_try_ends_is_refused() -> None:
    async def play() -> None:
        async with fleet() as ground:
            with ground.trial(budget=JOB_OF_10) as other:
                call = await granted(other, usd(9.0))
                with ground.trial(budget=JOB_OF_10) as budget:
                    waiting = asyncio.create_task(budget.reserve(usd(5.0)))
                    await asyncio.sleep(1)
                call.release()
                refused = await waiting
                assert isinstance(refused, Refused) and refused.kind == "ended" and budget.refused is None
                assert isinstance(await budget.reserve(usd(0.1)), Refused)
                assert (await granted(other, usd(10.0))).most.dollars == 10.0

    run_virtual(play())


def test_a_large_call_is_not_starved_by_small_ones() -> None:
    async def play() -> float:
        async with fleet() as ground:
            ends = False

            async def small() -> None:
                with ground.trial(budget=Budget(job=Cap(calls=3))) as budget:
                    while not ends:
                        call = await granted(budget, Amount(calls=1))
                        await asyncio.sleep(1.3)
                        call.settle(Amount())

            others = [asyncio.create_task(small()) for _ in range(6)]
            await asyncio.sleep(5)
            with ground.trial(budget=Budget(job=Cap(calls=3))) as budget:
                began = loop_time()
                (await granted(budget, Amount(calls=3))).release()
                ends = True
                waited = loop_time() - began
            await asyncio.gather(*others)
            return waited

    assert run_virtual(play()) < 10


def test_a_worker_that_leaves_gives_everything_back() -> None:
    async def play() -> None:
        async with fleet(2) as ground:
            with ground.trial(0, JOB_OF_10) as budget:
                (await granted(budget, usd(1.0))).settle(usd(1.0))
            ground.kill(0)
            await ground.workers[0].leave()
            with ground.trial(1, JOB_OF_10) as other:
                began = loop_time()
                assert (await granted(other, usd(9.0))).most.dollars == 9.0
                assert loop_time() == began

    run_virtual(play())


def test_what_is_left_is_told() -> None:
    async def play() -> None:
        async with fleet() as ground:
            with ground.trial(budget=Budget(trial=Cap(dollars=2.0, calls=9), job=Cap(dollars=5.0))) as budget:
                assert (budget.left().dollars, budget.left().calls) == (2.0, 9)
                (await granted(budget, usd(0.5))).settle(usd(0.5))
                assert (budget.left().dollars, budget.left().calls, budget.spent.dollars) == (1.5, 8, 0.5)

    run_virtual(play())
