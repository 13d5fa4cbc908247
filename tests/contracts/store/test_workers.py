"""Workers tell that they are there."""

from __future__ import annotations

from seatrial.ports.store import Heartbeat, Store, WorkerRow
from tests.contracts.store.samples import MINUTE, NOON


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
    await store.beat(about("b"), NOON)
    await store.beat(about("a"), NOON)
    await store.beat(about("b", capacity=9), NOON + 2 * MINUTE)
    a, b = await store.workers()
    assert a == WorkerRow(seen_at=NOON, **about("a").model_dump())
    assert (b.worker, b.capacity, b.seen_at) == ("b", 9, NOON + 2 * MINUTE)
    assert await store.workers(seen_since=NOON + MINUTE) == [b]
    await store.forget_worker("b")
    await store.forget_worker("b")
    assert await store.workers() == [a]
