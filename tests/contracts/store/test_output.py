"""Live output of running trials: a bounded ring for each, read without gaps."""

from __future__ import annotations

import asyncio

from seatrial.domain.output import RING_PIECES, NewOutput, OutputStream
from seatrial.domain.trial import Trial
from seatrial.ports.store import Store
from tests.contracts.store.conftest import StoreOpener
from tests.contracts.store.samples import MINUTE, NOON, passed, submit


def piece(trial: Trial, text: str, stream: OutputStream = OutputStream.TERMINAL) -> NewOutput:
    return NewOutput(trial_id=trial.id, attempt=trial.try_number, stream=stream, text=text)


async def running(store: Store, trials: int = 1) -> list[Trial]:
    await submit(store, trials)
    return await store.trials.claim("w1", MINUTE, trials, NOON)


async def test_pieces_are_read_on_from_a_number(store: Store) -> None:
    one, two = await running(store, 2)
    await store.output.append([piece(one, "a ü\x1b[0m"), piece(two, "b", OutputStream.VERIFIER)], NOON)
    await store.output.append([piece(one, "c", OutputStream.LOG)], NOON + MINUTE)
    everything = await store.output.read([one.id, two.id])
    assert [(part.trial_id, part.stream.value, part.text) for part in everything] == [
        (one.id, "terminal", "a ü\x1b[0m"),
        (two.id, "verifier", "b"),
        (one.id, "log", "c"),
    ]
    assert [part.seq for part in everything] == sorted({part.seq for part in everything})
    assert (everything[0].at, everything[2].at, everything[0].attempt) == (NOON, NOON + MINUTE, 1)
    assert await store.output.read([one.id]) == [everything[0], everything[2]]
    assert await store.output.read([one.id, two.id], after=everything[0].seq) == everything[1:]
    assert await store.output.read([one.id, two.id], limit=2) == everything[:2]
    assert await store.output.read([]) == []


async def test_the_oldest_pieces_fall_out_and_only_those(store: Store) -> None:
    one, two = await running(store, 2)
    await store.output.append([piece(two, "stays")], NOON)
    written = [f"{number}" for number in range(RING_PIECES + 50)]
    for start in range(0, len(written), 90):
        await store.output.append([piece(one, text) for text in written[start : start + 90]], NOON)
    kept = await store.output.read([one.id], limit=2 * RING_PIECES)
    assert [part.text for part in kept] == written[-RING_PIECES:]
    assert [part.text for part in await store.output.read([two.id])] == ["stays"]
    assert [part.text for part in await store.output.read([one.id], after=kept[9].seq, limit=2)] == written[60:62]


async def test_a_ring_that_another_process_began_is_trimmed_as_well(open_store: StoreOpener) -> None:
    store = await open_store()
    (trial,) = await running(store)
    written = [f"{number}" for number in range(RING_PIECES + 30)]
    await store.output.append([piece(trial, text) for text in written[: RING_PIECES - 10]], NOON)
    other = await open_store()
    for text in written[RING_PIECES - 10 :]:
        await other.output.append([piece(trial, text)], NOON)
    kept = await other.output.read([trial.id], limit=2 * RING_PIECES)
    assert [part.text for part in kept] == written[-RING_PIECES:]


async def test_an_attempt_that_is_over_adds_nothing(store: Store) -> None:
    (trial,) = await running(store)
    await store.output.append([piece(trial, "before")], NOON)
    stale = trial.model_copy(update={"try_number": trial.try_number + 1})
    await store.output.append([piece(stale, "another attempt's"), piece(trial, "still running")], NOON)
    await store.trials.finish(trial.id, trial.try_number, passed(), NOON)
    await store.output.append([piece(trial, "after")], NOON)
    assert [part.text for part in await store.output.read([trial.id])] == ["before", "still running"]


async def test_a_dropped_ring_is_empty_and_numbers_go_on(store: Store) -> None:
    one, two = await running(store, 2)
    await store.output.append([piece(one, "a"), piece(two, "b")], NOON)
    last = (await store.output.read([one.id, two.id]))[-1].seq
    await store.output.drop([one.id])
    await store.output.drop([])
    assert await store.output.read([one.id]) == []
    assert [part.text for part in await store.output.read([two.id])] == ["b"]
    await store.output.drop([two.id])
    await store.output.append([piece(one, "c")], NOON)
    assert [part.text for part in await store.output.read([one.id, two.id], after=last)] == ["c"]


async def test_a_reader_that_follows_misses_nothing(open_store: StoreOpener) -> None:
    """Several processes write at the same moment, in portions of different length."""
    writers = [await open_store() for _ in range(3)]
    trials = await running(writers[0], 6)
    done = asyncio.Event()

    async def write(number: int) -> None:
        for turn in range(12):
            size = 1 + 20 * ((number + turn) % 2)
            await writers[number % 3].output.append([piece(trials[number], f"{turn}")] * size, NOON)

    async def follow() -> list[int]:
        reader, seen = await open_store(), [0]
        while True:
            last_look = done.is_set()
            while batch := await reader.output.read([trial.id for trial in trials], after=seen[-1], limit=50):
                seen += [part.seq for part in batch]
            if last_look:
                return seen[1:]
            await asyncio.sleep(0)

    following = [asyncio.create_task(follow()) for _ in range(2)]
    await asyncio.gather(*(write(number) for number in range(len(trials))))
    done.set()
    everything = [part.seq for part in await writers[0].output.read([trial.id for trial in trials], limit=5000)]
    assert len(everything) == len(trials) * 12 * 11
    for seen in await asyncio.gather(*following):
        assert seen == everything


async def test_the_tail_of_the_event_log_is_where_new_events_begin(store: Store) -> None:
    assert await store.events.last() == 0
    await submit(store, 3)
    last = await store.events.last()
    assert last == (await store.events.read())[-1].seq
    assert await store.events.read(after=last) == []
    await store.trials.claim("w1", MINUTE, 2, NOON)
    assert len(await store.events.read(after=last)) == 2
