"""Slices of caps: over all holders never more than the cap, nothing counted twice, and nothing lost with a worker."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from seatrial.domain.model_calls.budget import MOST, NOTHING, WITHOUT_CAP, Amount, Budget, Cap, Scope, Spending
from seatrial.domain.model_calls.budget_slices import SliceGrant, SliceReport
from seatrial.engine.budgets.slices import Budgets
from seatrial.engine.budgets.trial_budget import Reservation, TrialBudget
from seatrial.engine.clock import system_clock
from seatrial.ports.store import Store
from tests.contracts.store.conftest import StoreOpener
from tests.contracts.store.samples import submit

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LEASE = timedelta(seconds=10)
DAY = Scope.of_day(NOW)
CAP = Amount(1000, MOST, MOST)


def usd(nanodollars: int) -> Amount:
    return Amount(nanodollars)


async def tell(store: Store, holder: str, number: int, after: float = 0.0, **report: Any) -> SliceGrant:
    scope = report.pop("scope", DAY)
    cap = report.pop("cap", CAP)
    spent = report.pop("spent", NOTHING)
    report.setdefault("contact_sec", 60.0)
    told = SliceReport(scope, holder, number, cap, spent, **report)
    return (await store.budgets.exchange([told], LEASE, NOW + timedelta(seconds=after)))[holder]


async def spent(store: Store, scope: Scope = DAY) -> Amount:
    return (await store.budgets.spending([scope]))[scope.name].spent


async def test_slices_never_hold_more_than_the_cap(open_store: StoreOpener) -> None:
    """From several processes at once, as on several machines."""
    stores = [await open_store() for _ in range(2)]
    wanted = [tell(stores[n % 2], f"worker-{n}", 1, needs=usd(100), waited_sec=1.0) for n in range(30)]
    grants = await asyncio.gather(*wanted)
    rooms = [grant.room.nanodollars for grant in grants]
    assert sum(rooms) <= 1000 and max(rooms) >= 100


async def test_what_is_spent_is_counted_over_all_holders(store: Store) -> None:
    first = await tell(store, "one", 1)
    assert first.room.covers(usd(100)) and first.left.nanodollars == 1000
    await tell(store, "one", 2, spent=Amount(100, 7, 1))
    second = await tell(store, "two", 1, spent=Amount(50, 3, 1))
    assert second.left.nanodollars == 850
    assert await spent(store) == Amount(150, 10, 2)


async def test_a_report_that_comes_twice_counts_once(store: Store) -> None:
    for _ in range(3):
        await tell(store, "one", 1, spent=usd(100))
    await tell(store, "one", 3, spent=usd(300))
    late = await tell(store, "one", 2, spent=usd(200), idle=usd(700))
    assert await spent(store) == usd(300) and not late.lapsed
    other = await tell(store, "two", 1, needs=usd(600), waited_sec=1.0)
    assert other.room.nanodollars >= 0


async def test_a_slice_shrinks_only_by_its_holders_own_hand(store: Store) -> None:
    first = await tell(store, "one", 1)
    held = first.room
    kept = await tell(store, "one", 2, idle=held)
    assert kept.room.covers(held)
    waits = await tell(store, "two", 1, needs=usd(900), waited_sec=1.0)
    assert not waits.room.covers(usd(900))
    asked = await tell(store, "one", 3, idle=held)
    assert asked.room == held and asked.idle.nanodollars == 0, "it is asked to give back, and has not yet"
    await tell(store, "one", 4, idle=NOTHING)
    assert (await tell(store, "two", 2, idle=waits.room, needs=usd(900), waited_sec=1.5)).room.covers(usd(900))


async def test_a_silent_holder_lapses_and_its_slice_comes_back(store: Store) -> None:
    await tell(store, "one", 1, promised=usd(600), in_flight=usd(200))
    early = await tell(store, "two", 1, after=9.9, needs=usd(800), waited_sec=1.0)
    assert not early.room.covers(usd(800)) and early.left.nanodollars == 1000
    late = await tell(store, "two", 2, after=10, idle=early.room, needs=usd(800), waited_sec=1.0)
    assert late.room.covers(usd(800)) and late.left.nanodollars == 800, "calls under way count as expected"


async def test_after_an_outage_nobody_lapses_before_he_could_report(store: Store) -> None:
    await tell(store, "one", 1, promised=usd(600), in_flight=usd(200))
    early = await tell(store, "two", 1, after=40, needs=usd(800), waited_sec=1.0, contact_sec=9.9)
    assert not early.room.covers(usd(800)), "the store has answered this one for less than a lease"
    back = await tell(store, "one", 2, after=41, spent=usd(500), promised=usd(100), in_flight=usd(100))
    assert not back.lapsed
    late = await tell(store, "two", 2, after=60, idle=early.room, needs=usd(300), waited_sec=1.0, contact_sec=30.0)
    assert late.left.nanodollars == 400 and late.room.covers(usd(300))


async def test_a_holder_that_returns_tells_the_truth_and_has_nothing_left(store: Store) -> None:
    await tell(store, "one", 1, promised=usd(600), in_flight=usd(200), idle=NOTHING)
    taken = await tell(store, "two", 1, after=11, needs=usd(700), waited_sec=1.0)
    back = await tell(store, "one", 2, after=12, spent=usd(250), idle=usd(750))
    assert back.lapsed and back.left.nanodollars == 750 and await spent(store) == usd(250)
    assert back.room.nanodollars + taken.room.nanodollars + 250 <= 1000


async def test_a_report_in_time_keeps_the_slice(store: Store) -> None:
    await tell(store, "one", 1, promised=usd(600), in_flight=usd(200))
    await tell(store, "one", 2, after=9, promised=usd(600), in_flight=usd(200))
    other = await tell(store, "two", 1, after=18, needs=usd(800), waited_sec=1.0)
    assert not other.room.covers(usd(800)) and other.left.nanodollars == 1000


async def test_the_newest_try_of_a_trial_has_all_and_ends_the_one_before(store: Store) -> None:
    job = await submit(store)
    scope = Scope.of_trial(job.id, 1)
    first = await tell(store, "one", 1, scope=scope, rank=1, promised=usd(300), in_flight=usd(200))
    assert first.room.nanodollars == 1000
    second = await tell(store, "two", 1, scope=scope, rank=2)
    assert second.room.nanodollars == 800 == second.left.nanodollars
    await tell(store, "one", 2, scope=scope, rank=1, spent=usd(40), closes=True)
    assert await spent(store, scope) == usd(40)


async def test_a_try_that_was_replaced_gets_nothing_and_takes_nothing(store: Store) -> None:
    """The worker of a lost try is alive, and does not know yet that another try began."""
    job = await submit(store)
    scope = Scope.of_trial(job.id, 1)
    await tell(store, "old", 1, scope=scope, rank=1, promised=usd(300), in_flight=usd(200))
    new = await tell(store, "new", 1, scope=scope, rank=2, promised=usd(100), in_flight=usd(100))
    back = await tell(store, "old", 2, scope=scope, rank=1, spent=usd(50), promised=usd(150), in_flight=usd(150))
    assert back.lapsed and not back.left and back.room == usd(150), "its calls under way go on, and that is all"
    silent = await tell(store, "older", 1, scope=scope, rank=1, needs=usd(10))
    assert not silent.room and not silent.left, "it reports for the first time, and too late"
    still = await tell(store, "new", 2, scope=scope, rank=2, promised=usd(100), idle=usd(700), in_flight=usd(100))
    assert not still.lapsed and still.room.nanodollars == 800 == new.room.nanodollars
    assert still.left.nanodollars == 800, "50 spent, and 150 under way"
    await tell(store, "old", 3, scope=scope, rank=1, spent=usd(90), closes=True)
    assert await spent(store, scope) == usd(90)


async def test_a_closed_slice_holds_nothing(store: Store) -> None:
    await tell(store, "one", 1, idle=NOTHING)
    for _ in range(2):  # the answer to the first was lost
        await tell(store, "one", 2, spent=usd(10), closes=True)
    assert (await tell(store, "two", 1, needs=usd(990), waited_sec=1.0)).room.nanodollars == 990
    assert await spent(store) == usd(10)
    assert (await tell(store, "one", 3, spent=usd(10), idle=NOTHING)).left.nanodollars == 990


async def test_without_a_cap_spending_is_counted(store: Store) -> None:
    grant = await tell(store, "one", 1, cap=WITHOUT_CAP, spent=Amount(5, 6, 7), in_flight=Amount(1, 2, 1))
    assert grant.room.covers(Amount(10**18, 10**18, 10**18))
    assert (await store.budgets.spending([DAY]))[DAY.name] == Spending(Amount(5, 6, 7), Amount(1, 2, 1))


async def test_the_largest_amounts_are_kept(store: Store) -> None:
    """A sum over 64 bits would make every later report fail."""
    for number in range(1, 4):
        await tell(store, "one", number, spent=Amount(MOST, MOST, MOST))
        await tell(store, f"other-{number}", 1, spent=Amount(MOST, MOST, MOST))
    assert await spent(store) == Amount(MOST, MOST, MOST)


async def test_all_reports_of_a_call_take_effect_together(store: Store) -> None:
    job = await submit(store)
    scopes = [Scope.of_trial(job.id, 1), Scope.of_job(job.id), DAY]
    reports = [SliceReport(scope, f"one#{number}", 1, CAP, usd(9)) for number, scope in enumerate(scopes)]
    assert set(await store.budgets.exchange(reports, LEASE, NOW)) == {report.holder for report in reports}
    found = await store.budgets.spending([*scopes, Scope.of_job(job.id + 1)])
    assert [found[scope.name].spent for scope in scopes] == [usd(9)] * 3
    assert found[Scope.of_job(job.id + 1).name] == Spending()
    assert await store.budgets.exchange([], LEASE, NOW) == {}


async def test_spending_is_deleted_with_its_job(store: Store) -> None:
    job = await submit(store)
    kept = await submit(store)
    for each in (job, kept):
        await tell(store, "one", 1, scope=Scope.of_job(each.id), spent=usd(9))
    await store.jobs.cancel(job.id, NOW)
    await store.jobs.delete(job.id)
    assert await spent(store, Scope.of_job(job.id)) == NOTHING and await spent(store, Scope.of_job(kept.id)) == usd(9)
    late = [SliceReport(Scope.of_job(each.id), f"one#{each.id}", 2, CAP, usd(10)) for each in (job, kept)]
    assert set(await store.budgets.exchange(late, LEASE, NOW)) == {f"one#{kept.id}"}


async def test_slices_that_are_over_are_forgotten(open_store: StoreOpener) -> None:
    store = await open_store()
    await tell(store, "one", 1, spent=usd(10), closes=True)
    await tell(store, "two", 1, promised=usd(20), in_flight=usd(5))
    tomorrow = 2 * 86_400.0
    await tell(store, "three", 1, after=tomorrow)
    await tell(store, "three", 2, after=2 * tomorrow)
    again = await tell(store, "two", 1, after=2 * tomorrow, needs=usd(980), waited_sec=1.0)
    assert again.left.nanodollars == 985 and not again.lapsed, "a new holder, and what it had under way was counted"


@pytest.mark.parametrize("kind", ["nanodollars", "tokens", "calls"])
async def test_each_kind_has_a_cap_of_its_own(store: Store, kind: str) -> None:
    cap = Amount(**{**dict.fromkeys(["nanodollars", "tokens", "calls"], MOST), kind: 10})
    one = await tell(store, "one", 1, cap=cap, needs=Amount(3, 3, 3), waited_sec=1.0)
    two = await tell(store, "two", 1, cap=cap, needs=Amount(8, 8, 8), waited_sec=1.0)
    assert one.room.covers(Amount(3, 3, 3)) and not two.room.covers(Amount(8, 8, 8))
    others = {"nanodollars", "tokens", "calls"} - {kind}
    assert all(getattr(two.room, other) > 10**15 for other in others)


async def test_fifty_racing_trials_of_several_workers_stay_within_a_cap(open_store: StoreOpener) -> None:
    """The whole way: reservations on four workers, and their slices in one store."""
    stores = [await open_store() for _ in range(2)]
    job = await submit(stores[0])
    workers = [Budgets(stores[n % 2].budgets, f"w{n}", system_clock, timedelta(minutes=1)) for n in range(4)]
    chance, prices = random.Random(0), list[int]()

    async def agent(number: int) -> None:
        with TrialBudget(workers[number % 4], number, 1, job.id, Budget(job=Cap(tokens=5000))) as budget:
            while isinstance(call := await budget.reserve(tokens(20), least=tokens(10), most=tokens(600)), Reservation):
                await asyncio.sleep(chance.uniform(0, 0.01))
                prices.append(min(call.most.tokens, chance.choice([10, 20, 30, 300, 600])))
                call.settle(tokens(prices[-1]))

    async def sync(worker: Budgets) -> None:
        while True:
            with suppress(TimeoutError):  # a store that takes long is asked again, as the duties of a worker do
                await worker.sync()
            await asyncio.sleep(0.05)

    async with asyncio.TaskGroup() as group:
        syncing = [group.create_task(sync(worker)) for worker in workers]
        await asyncio.gather(*(agent(number) for number in range(50)))
        for task in syncing:
            task.cancel()
    for worker in workers:
        await worker.leave()
    assert 5000 - 10 < sum(prices) <= 5000
    assert await spent(stores[1], Scope.of_job(job.id)) == Amount(0, sum(prices), len(prices))


def tokens(number: int) -> Amount:
    return Amount(tokens=number, calls=1)
