"""Workers tell that they are there."""

from __future__ import annotations

from seatrial.ports.store import Heartbeat, Store, WorkerRow
from tests.contracts.store.samples import MINUTE, NOON, passed, submit


def about(worker: str, capacity: int = 8) -> Heartbeat:
    return Heartbeat(
        worker=worker,
        host="here",
        pid=7,
        capacity=capacity,
        started_at=NOON,
        agents=("oracle",),
        sandboxes=("oci",),
        versions={"seatrial": "1"},
    )


async def test_workers_are_seen_and_forgotten(store: Store) -> None:
    await store.workers.beat(about("b"), NOON)
    await store.workers.beat(about("a"), NOON)
    await store.workers.beat(about("b", capacity=9), NOON + 2 * MINUTE)
    a, b = await store.workers.all()
    assert a == WorkerRow(seen_at=NOON, **about("a").model_dump())
    assert (b.worker, b.capacity, b.seen_at) == ("b", 9, NOON + 2 * MINUTE)
    assert await store.workers.all(seen_since=NOON + MINUTE) == [b]
    await store.workers.forget("b")
    await store.workers.forget("b")
    assert await store.workers.all() == [a]


async def test_who_has_how_many_trials_under_way(store: Store) -> None:
    await submit(store, trials=4)
    assert await store.trials.running_by_worker() == {}
    first, *_ = await store.trials.claim("busy", MINUTE, 2, NOON)
    await store.trials.claim("calm", MINUTE, 1, NOON)
    assert await store.trials.running_by_worker() == {"busy": 2, "calm": 1}
    await store.trials.finish(first.id, 1, passed(), NOON)
    assert await store.trials.running_by_worker() == {"busy": 1, "calm": 1}


def test_a_heartbeat_of_a_newer_version_is_read() -> None:
    told = about("new").model_dump() | {"mood": "eager"}
    assert Heartbeat.model_validate(told) == about("new")
