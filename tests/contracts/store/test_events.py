"""The event log is appended to and tailed."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.domain.event import Event, EventKind, NewEvent
from seatrial.errors import NotFound
from seatrial.ports.store import Store
from tests.contracts.store.conftest import StoreOpener
from tests.contracts.store.samples import MINUTE, NOON, submit


def step(job_id: int, number: int = 0, trial_id: int | None = None) -> NewEvent:
    return NewEvent(kind=EventKind.TRIAL_STEP, job_id=job_id, trial_id=trial_id, data={"number": number, "ü": None})


async def test_events_are_read_on_from_a_number(store: Store) -> None:
    one, two = await submit(store), await submit(store)
    await store.events.append([step(one.id, 1, trial_id=7), step(two.id, 2)], NOON + MINUTE)
    everything = await store.events.read()
    assert [event.kind.value for event in everything] == ["job.created", "job.created", "trial.step", "trial.step"]
    assert [event.seq for event in everything] == sorted({event.seq for event in everything})
    assert everything[2] == Event(seq=everything[2].seq, at=NOON + MINUTE, **step(one.id, 1, trial_id=7).model_dump())
    assert await store.events.read(after=everything[1].seq) == everything[2:]
    assert await store.events.read(limit=2) == everything[:2]
    assert await store.events.read(job_id=two.id) == [everything[1], everything[3]]
    assert await store.events.read(trial_id=7) == [everything[2]]
    assert await store.events.read(after=everything[-1].seq) == []


async def test_nothing_is_told_about_a_job_that_does_not_exist(store: Store) -> None:
    job = await submit(store)
    before = await store.events.read()
    with pytest.raises(NotFound):
        await store.events.append([step(job.id), step(99)], NOON)
    assert await store.events.read() == before
    await store.events.append([], NOON)
    await store.events.append([step(job.id)], NOON)
    assert len(await store.events.read()) == len(before) + 1


async def test_a_reader_that_follows_the_tail_misses_nothing(open_store: StoreOpener) -> None:
    """Many writers commit at the same moment, with transactions of different length."""
    writers = [await open_store() for _ in range(3)]
    job = await submit(writers[0])
    per_writer, rounds = 24, 12
    done = asyncio.Event()

    async def write(number: int) -> None:
        for turn in range(rounds):
            size = 1 + 40 * ((number + turn) % 2)
            await writers[number % len(writers)].events.append([step(job.id, turn)] * size, NOON)

    async def follow() -> list[int]:
        reader, seen = await open_store(), [0]
        while True:
            last_look = done.is_set()
            while batch := await reader.events.read(after=seen[-1], limit=100):
                seen += [event.seq for event in batch]
            if last_look:
                return seen[1:]
            await asyncio.sleep(0)

    following = [asyncio.create_task(follow()) for _ in range(3)]
    await asyncio.gather(*(write(number) for number in range(per_writer)))
    done.set()
    everything: list[int] = []
    while batch := await writers[0].events.read(after=everything[-1] if everything else 0):
        everything += [event.seq for event in batch]
    assert len(everything) == 1 + per_writer * rounds * 21
    for seen in await asyncio.gather(*following):
        assert seen == everything
