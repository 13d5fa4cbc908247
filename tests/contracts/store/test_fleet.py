"""Open work by task, workers that may leave, and duties that one process does for all."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.domain.fleet.work_units import OpenWork
from seatrial.ports.store import Store
from tests.contracts.store.conftest import StoreOpener
from tests.contracts.store.samples import MINUTE, NOON, faulty, passed, submit
from tests.contracts.store.test_workers import about


def digest(number: int) -> str:
    return f"sha256:{number:064x}"


def by_task(work: list[OpenWork]) -> dict[tuple[int, str], tuple[int, int | None]]:
    return {(each.job_id, each.task_digest): (each.trials, each.concurrency) for each in work}


async def test_queued_and_running_trials_are_open_work_and_ended_ones_are_not(store: Store) -> None:
    limited = await submit(store, trials=3, concurrency=2)
    free = await submit(store, trials=1)
    assert by_task(await store.totals.open_work()) == {
        **{(limited.id, digest(number)): (1, 2) for number in range(3)},
        (free.id, digest(0)): (1, None),
    }
    claimed = await store.trials.claim("w", MINUTE, 2, NOON)
    assert sum(work.trials for work in await store.totals.open_work()) == 4
    await store.trials.finish(claimed[0].id, 1, passed(), NOON)
    assert sum(work.trials for work in await store.totals.open_work()) == 3
    await store.jobs.cancel(free.id, NOON)
    await store.jobs.cancel(limited.id, NOON)
    running = await store.totals.open_work()
    assert [work.trials for work in running] == [1]


async def test_idle_workers_leave_only_while_enough_stay(store: Store) -> None:
    for name in "abc":
        await store.workers.beat(about(name), NOON)
    left = [await store.workers.leave_if_spare(name, 1, NOON, NOON) for name in "abc"]
    assert left == [True, True, False]
    await store.workers.beat(about("a"), NOON)
    assert not await store.workers.leave_if_spare("c", 1, NOON, NOON), "a heartbeat does not take back a decision"


async def test_of_workers_that_ask_at_once_the_minimum_stays(open_store: StoreOpener) -> None:
    stores = [await open_store() for _ in range(4)]
    names = [f"w{number}" for number in range(8)]
    for name in names:
        await stores[0].workers.beat(about(name), NOON)
    asked = (stores[turn % 4].workers.leave_if_spare(name, 3, NOON, NOON) for turn, name in enumerate(names))
    assert sum(await asyncio.gather(*asked)) == 5


@pytest.mark.parametrize("state", [{"draining": True}, {"starting": True}, {"paused": "The disk is full."}])
async def test_workers_that_do_not_work_do_not_count_as_staying(store: Store, state: dict[str, object]) -> None:
    await store.workers.beat(about("a"), NOON)
    await store.workers.beat(about("b").model_copy(update=state), NOON)
    assert not await store.workers.leave_if_spare("a", 1, NOON, NOON)
    await store.workers.beat(about("b"), NOON)
    assert await store.workers.leave_if_spare("a", 1, NOON, NOON)


async def test_silent_workers_do_not_count_and_busy_or_unknown_ones_stay(store: Store) -> None:
    await submit(store)
    for name in "ab":
        await store.workers.beat(about(name), NOON)
    assert not await store.workers.leave_if_spare("a", 1, NOON + MINUTE, NOON + MINUTE)
    (trial,) = await store.trials.claim("a", MINUTE, 1, NOON)
    assert not await store.workers.leave_if_spare("a", 1, NOON, NOON)
    assert not await store.workers.leave_if_spare("nobody", 0, NOON, NOON)
    await store.trials.finish(trial.id, 1, passed(), NOON)
    assert await store.workers.leave_if_spare("a", 1, NOON, NOON)


async def test_a_duty_has_one_holder_until_its_lease_expires(store: Store) -> None:
    assert await store.duties.take("publish", "a", MINUTE, NOON)
    assert not await store.duties.take("publish", "b", MINUTE, NOON)
    assert await store.duties.take("another", "b", MINUTE, NOON)
    assert await store.duties.take("publish", "a", MINUTE, NOON + MINUTE / 2)
    assert not await store.duties.take("publish", "b", MINUTE, NOON + MINUTE)
    assert await store.duties.take("publish", "b", MINUTE, NOON + 2 * MINUTE)
    assert not await store.duties.take("publish", "a", MINUTE, NOON + 2 * MINUTE)


async def test_of_those_who_ask_for_a_duty_at_once_one_gets_it(open_store: StoreOpener) -> None:
    stores = [await open_store() for _ in range(4)]
    asked = (store.duties.take("publish", f"api-{turn}", MINUTE, NOON) for turn, store in enumerate(stores))
    assert sum(await asyncio.gather(*asked)) == 1
    later = (store.duties.take("publish", f"new-{turn}", MINUTE, NOON + MINUTE) for turn, store in enumerate(stores))
    assert sum(await asyncio.gather(*later)) == 1


async def test_whether_anything_is_due(store: Store) -> None:
    assert not await store.trials.any_due(NOON)
    await submit(store)
    assert await store.trials.any_due(NOON)
    (trial,) = await store.trials.claim("w", MINUTE, 1, NOON)
    assert not await store.trials.any_due(NOON)
    await store.trials.try_again(trial.id, 1, faulty(), MINUTE, NOON)
    assert not await store.trials.any_due(NOON)
    assert await store.trials.any_due(NOON + MINUTE)
