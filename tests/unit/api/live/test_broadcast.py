"""One reader for many listeners: nothing is missed or told twice, and who falls behind reads from the store."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from seatrial.api.live.broadcast import Broadcast, Choice
from seatrial.api.live.event_stream import Feed
from seatrial.api.live.messages import Position
from seatrial.domain.event import Event, EventKind, NewEvent
from seatrial.domain.job import Job
from seatrial.domain.output import RING_PIECES, NewOutput, OutputStream
from seatrial.domain.trial import Trial, TrialState
from seatrial.ports.store import TrialFilter
from seatrial.testing.memory_store import MemoryStore
from seatrial.testing.memory_store.events import MemoryEvents
from seatrial.testing.memory_store.jobs import MemoryJobs
from seatrial.testing.memory_store.trials import MemoryTrials
from tests.contracts.store.samples import MINUTE, NOON, faulty, passed, submit
from tests.waiting import LIMIT_SEC, eventually


class CountingEvents(MemoryEvents):
    """Counts who asks."""

    reads = 0

    async def read(self, *arguments: Any, **options: Any) -> list[Event]:
        self.reads += 1
        return await super().read(*arguments, **options)


class CountingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.events: CountingEvents = CountingEvents(self.records)


class Rounds:
    """The pause between two rounds of the reader: over when the test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.sleepers = 0
        self._allowed = asyncio.Semaphore(0)

    async def sleep(self, seconds: float) -> None:
        self.begun += 1
        self.sleepers += 1
        try:
            await self._allowed.acquire()
        finally:
            self.sleepers -= 1

    def go(self) -> None:
        """The next round begins; it may be the last."""
        self._allowed.release()

    async def one(self) -> None:
        """Returns when the round is over and the next pause has begun."""
        await eventually(lambda: self.sleepers, "the reader's pause")
        before = self.begun
        self.go()
        await eventually(lambda: self.begun > before, "the reader's next pause")


def step(trial: Trial, number: int) -> NewEvent:
    return NewEvent(kind=EventKind.TRIAL_STEP, job_id=trial.job_id, trial_id=trial.id, data={"number": number})


def said(trial: Trial, text: str) -> NewOutput:
    return NewOutput(trial_id=trial.id, attempt=trial.try_number, stream=OutputStream.LOG, text=text)


async def running(store: MemoryStore) -> Trial:
    await submit(store)
    (trial,) = await store.trials.claim("w", MINUTE, 1, NOON)
    return trial


class Reader:
    """A client of one feed."""

    def __init__(self, store: MemoryStore, broadcast: Broadcast, choice: Choice, after: str = "") -> None:
        self._portions = Feed(store, broadcast, choice, Position.parse(after)).portions()
        self.text = ""

    async def read_on(self, until: str) -> None:
        async with asyncio.timeout(LIMIT_SEC):
            while until not in self.text:
                self.text += (await anext(self._portions)).decode()

    async def read_to_end(self) -> None:
        async with asyncio.timeout(LIMIT_SEC):
            async for portion in self._portions:
                self.text += portion.decode()

    async def leave(self) -> None:
        await self._portions.aclose()

    @property
    def steps(self) -> list[int]:
        return [int(number) for number in re.findall(r'"number":(\d+)', self.text)]


async def test_many_listeners_cost_the_store_one_reader() -> None:
    store = CountingStore()
    trial = await running(store)
    rounds = Rounds()
    broadcast = Broadcast(store, sleep=rounds.sleep)
    readers = [Reader(store, broadcast, Choice(job_id=trial.job_id)) for _ in range(50)]
    await asyncio.gather(*(reader.read_on("trial.claimed") for reader in readers))
    reading = [asyncio.create_task(reader.read_to_end()) for reader in readers]
    await store.events.append([step(trial, 0)], NOON)
    await rounds.one()
    await eventually(lambda: all(reader.steps for reader in readers), "everybody listens")
    store.events.reads = 0
    for number in range(1, 20):
        await store.events.append([step(trial, number)], NOON)
        await rounds.one()
    assert store.events.reads == 19
    await store.trials.finish(trial.id, trial.try_number, passed(), NOON)
    rounds.go()
    await asyncio.gather(*reading)
    assert [reader.steps for reader in readers] == [list(range(20))] * 50
    assert {reader.text.count("event: end\n") for reader in readers} == {1}
    assert store.events.reads == 20
    assert not broadcast._listeners


async def test_nobody_listens_and_nobody_reads() -> None:
    store = CountingStore()
    trial = await running(store)
    rounds = Rounds()
    broadcast = Broadcast(store, sleep=rounds.sleep)
    reader = Reader(store, broadcast, Choice(trial_id=trial.id, output=True))
    await reader.read_on("trial.claimed")
    store.events.reads = 0
    for _ in range(3):
        await rounds.one()
    assert store.events.reads == 3
    await reader.leave()
    await eventually(lambda: not rounds.sleepers, "the reader's end")
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "broadcast"]
    assert store.events.reads == 3


async def test_who_falls_behind_is_told_the_rest_from_the_store_and_holds_up_nobody() -> None:
    store = MemoryStore()
    trial = await running(store)
    broadcast = Broadcast(store, every_sec=0.01)
    slow, quick = (Reader(store, broadcast, Choice(job_id=trial.job_id)) for _ in range(2))
    await slow.read_on("trial.claimed")
    await quick.read_on("trial.claimed")
    for start in range(0, 9000, 300):
        await store.events.append([step(trial, number) for number in range(start, start + 300)], NOON)
        await quick.read_on(f'"number":{start + 299}}}')
    (listener,) = [one for one in broadcast._listeners if one.lost_track]
    assert listener.queue == []
    await store.trials.finish(trial.id, trial.try_number, passed(), NOON)
    await slow.read_to_end()
    await quick.read_to_end()
    assert slow.steps == quick.steps == list(range(9000))


async def test_output_that_fell_out_of_the_ring_is_said_to_be_missing() -> None:
    store = MemoryStore()
    trial = await running(store)
    broadcast = Broadcast(store, every_sec=0.01)
    choice = Choice(trial_id=trial.id, output=True)
    await store.output.append([said(trial, f"piece {number}.") for number in range(RING_PIECES - 1)], NOON)
    whole = Reader(store, broadcast, choice)
    await whole.read_on(f"piece {RING_PIECES - 2}.")
    assert "event: gap" not in whole.text
    await store.output.append([said(trial, f"more {number}.") for number in range(100)], NOON)
    late = Reader(store, broadcast, choice)
    await late.read_on("more 99.")
    assert late.text.count("event: gap") == 1
    assert "piece 99." in late.text
    assert "piece 98." not in late.text
    here = Reader(store, broadcast, choice, after=f"2-{RING_PIECES - 1}")
    await here.read_on("more 99.")
    assert "event: gap" not in here.text
    for reader in (whole, late, here):
        await reader.leave()


async def test_a_trial_that_is_retried_after_its_end_is_told_to_its_last_end() -> None:
    store = MemoryStore()
    trial = await running(store)
    await store.trials.finish(trial.id, trial.try_number, faulty(), NOON)
    await store.jobs.retry_trials([trial.id], NOON)
    rounds = Rounds()
    broadcast = Broadcast(store, sleep=rounds.sleep)
    reader = Reader(store, broadcast, Choice(trial_id=trial.id))
    reading = asyncio.create_task(reader.read_to_end())
    await eventually(lambda: "event: trial.ended" in reader.text, "the first end")
    await rounds.one()
    assert not reading.done()
    (again,) = await store.trials.claim("w", MINUTE, 1, NOON)
    await store.trials.finish(again.id, again.try_number, passed(), NOON)
    rounds.go()
    await reading
    assert reader.text.count("event: trial.ended") == 2


class EndsMeanwhile(MemoryJobs):
    """The job ends after its state was asked for and before its events are read."""

    async def get(self, job_id: int) -> Job:
        found = await super().get(job_id)
        trials = MemoryTrials(self._records)
        for row in [row async for row in trials.each(TrialFilter(states=(TrialState.RUNNING,)))]:
            await trials.finish(row.trial.id, row.trial.try_number, passed(), NOON)
        return found


async def test_an_end_that_is_read_from_the_store_is_an_end() -> None:
    store = MemoryStore()
    store.jobs = EndsMeanwhile(store.records)
    trial = await running(store)
    reader = Reader(store, Broadcast(store, every_sec=0.01), Choice(job_id=trial.job_id))
    await reader.read_to_end()
    assert reader.text.count("event: job.ended") == reader.text.count("event: end\n") == 1


async def test_closing_ends_all_streams() -> None:
    store = MemoryStore()
    trial = await running(store)
    rounds = Rounds()
    broadcast = Broadcast(store, sleep=rounds.sleep)
    reader = Reader(store, broadcast, Choice(job_id=trial.job_id))
    await reader.read_on("trial.claimed")
    reading = asyncio.create_task(reader.read_to_end())
    await rounds.one()
    broadcast.close()
    await reading
    assert "event: end" not in reader.text  # a client comes back
