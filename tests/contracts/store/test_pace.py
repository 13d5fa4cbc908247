"""The pace of providers: what one worker learned holds for all, and nobody gets what another one holds."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from seatrial.domain.model_calls.provider_pace import PaceGrant, PaceReport
from seatrial.ports.store import Store

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LEASE = timedelta(seconds=10)
REFUSED = PaceReport(in_flight=9, refused=1, peak=10, low=9, retry_after_sec=20.0)


async def tell(store: Store, worker: str, after: float = 0.0, name: str = "model", **report: float) -> PaceGrant:
    told = PaceReport.model_validate(report)
    return (await store.pace.exchange(worker, {name: told}, LEASE, NOW + timedelta(seconds=after)))[name]


async def test_without_a_refusal_there_is_no_limit(store: Store) -> None:
    assert await tell(store, "one", in_flight=500) == PaceGrant()
    assert await tell(store, "two", in_flight=500, answered=100) == PaceGrant()


async def test_a_refusal_holds_for_all_workers_and_for_its_provider_only(store: Store) -> None:
    await store.pace.exchange("one", {"model": REFUSED}, LEASE, NOW)
    other = await tell(store, "two", 5, waiting=4)
    assert other.pause_sec == 15.0 and other.slots is not None and other.slots <= 7
    assert await tell(store, "two", 5, "another model", waiting=4) == PaceGrant()


async def test_slots_are_given_once(store: Store) -> None:
    await store.pace.exchange("one", {"model": REFUSED}, LEASE, NOW)
    grants = await asyncio.gather(*(tell(store, f"worker-{number}", 1, waiting=5) for number in range(6)))
    assert sum(grant.slots or 0 for grant in grants) + 9 <= 9 + 7
    await tell(store, "one", 2, in_flight=0)
    grants = [await tell(store, f"worker-{number}", 3, waiting=5) for number in range(6)]
    held = [await tell(store, f"worker-{number}", 4, waiting=5) for number in range(6)]
    assert 0 < sum(grant.slots or 0 for grant in grants) <= 7
    assert 0 < sum(grant.slots or 0 for grant in held) <= 7


async def test_what_a_silent_worker_held_comes_back(store: Store) -> None:
    await store.pace.exchange("one", {"model": REFUSED}, LEASE, NOW)
    assert (await tell(store, "two", 9, waiting=20)).slots == 0
    assert (await tell(store, "two", 11, waiting=20)).slots == 7


async def test_a_worker_that_leaves_holds_nothing(store: Store) -> None:
    await store.pace.exchange("one", {"model": REFUSED}, LEASE, NOW)
    assert (await tell(store, "two", 1, waiting=20)).slots == 0
    await store.pace.leave("one")
    assert (await tell(store, "two", 2, waiting=20)).slots == 7


async def test_answers_raise_the_limit(store: Store) -> None:
    await store.pace.exchange("one", {"model": REFUSED}, LEASE, NOW)
    for second in range(1, 30):
        grant = await tell(store, "one", second, in_flight=7, waiting=90, answered=7)
    assert grant.slots is not None and grant.slots > 9


async def test_several_reports_are_told_at_once(store: Store) -> None:
    grants = await store.pace.exchange("one", {"b": REFUSED, "a": PaceReport(in_flight=3)}, LEASE, NOW)
    assert grants["a"] == PaceGrant() and grants["b"].slots == 7
    assert await store.pace.exchange("one", {}, LEASE, NOW) == {}
