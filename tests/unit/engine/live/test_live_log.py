"""A worker's live log: told while an attempt runs, dropped when it ended, nothing for what is over at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from seatrial.domain.output import NewOutput
from seatrial.domain.trial import Trial
from seatrial.engine.clock import system_clock
from seatrial.engine.live.watch import LiveLog
from seatrial.system.growing_files import FileView
from seatrial.testing.memory_store import MemoryStore
from seatrial.testing.memory_store.events import MemoryOutput
from seatrial.testing.memory_store.records import MemoryRecords
from tests.contracts.store.samples import MINUTE, NOON, passed, submit
from tests.waiting import eventually


class WatchedOutput(MemoryOutput):
    def __init__(self, records: MemoryRecords) -> None:
        super().__init__(records)
        self.writes: list[int] = []

    async def append(self, pieces: Sequence[NewOutput], now: object) -> None:
        self.writes.append(len(pieces))
        await super().append(pieces, NOON)


class WatchedStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.output: WatchedOutput = WatchedOutput(self.records)


class Pane:
    """A window that shows one file."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    async def look(self, seen: Mapping[str, int], wanted: Callable[[str], bool]) -> Sequence[FileView]:
        start = seen.get("agent/pane.txt", 0)
        return [FileView("agent/pane.txt", start, len(self.text), self.text[start:])]


class Time:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses = 0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses += 1
        self.now += seconds
        await asyncio.sleep(0)


class SlowPane:
    """A window of a busy machine: each look at it takes a while."""

    def __init__(self, time: Time) -> None:
        self._time = time
        self.looks: list[float] = []

    async def look(self, seen: Mapping[str, int], wanted: Callable[[str], bool]) -> Sequence[FileView]:
        self.looks.append(self._time.now)
        self._time.now += 0.2
        return []


def log_of(store: MemoryStore, time: Time) -> LiveLog:
    return LiveLog(
        store, system_clock, every_sec=0.02, first_after_sec=0.05, linger_sec=0.2, sleep=time.sleep, timer=time
    )


async def running(store: MemoryStore, trials: int = 1) -> list[Trial]:
    await submit(store, trials)
    return await store.trials.claim("w", MINUTE, trials, NOON)


async def test_many_attempts_are_told_in_one_write_and_their_rings_are_dropped(tmp_path: Path) -> None:
    store = WatchedStore()
    trials = await running(store, 30)
    async with log_of(store, Time()) as live:
        followed = [live.follow(trial, tmp_path / str(trial.id), ["sk-canary-1"]) for trial in trials]
        open_ones = [one.__enter__() for one in followed]
        for trial in trials:
            (tmp_path / str(trial.id)).mkdir()
            (tmp_path / str(trial.id) / "trial.log").write_text(f"{trial.id} sk-canary-1\n")
        open_ones[0].show(Pane(b"inside"))
        await eventually(lambda: store.output.writes, "a look")
        told = await store.output.read([trial.id for trial in trials])
        assert sorted(piece.text for piece in told) == sorted(
            ["inside", *(f"{trial.id} [REDACTED]\n" for trial in trials)]
        )
        assert store.output.writes == [31]
        with (tmp_path / str(trials[0].id) / "trial.log").open("a") as file:
            file.write("the last words")
        await live.catch_up(open_ones[0])
        assert "".join(piece.text for piece in await store.output.read([trials[0].id])).endswith("the last words")
        for trial, one in zip(trials, followed, strict=True):
            one.__exit__(None, None, None)
            await store.trials.finish(trial.id, trial.try_number, passed(), NOON)
            live.ended(trial)

        async def is_dropped() -> bool:
            return not await store.output.read([trial.id for trial in trials])

        await eventually(is_dropped, "the rings of ended trials are dropped")


async def test_an_attempt_that_is_over_at_once_writes_nothing(tmp_path: Path) -> None:
    store = WatchedStore()
    (trial,) = await running(store)
    time = Time()
    async with log_of(store, time) as live:
        (tmp_path / "trial.log").write_text("quick")
        with live.follow(trial, tmp_path, []) as followed:
            await live.catch_up(followed)
        await store.trials.finish(trial.id, trial.try_number, passed(), NOON)
        live.ended(trial)
        pauses = time.pauses
        await eventually(lambda: time.pauses > pauses + 20, "twenty rounds")
    assert store.output.writes == []


async def _looks_in_two_seconds(trials: int, directory: Path) -> int:
    store, time = WatchedStore(), Time()
    pane, began = SlowPane(time), time.now
    async with log_of(store, time) as live, contextlib.AsyncExitStack() as following:
        for trial in await running(store, trials):
            followed = following.enter_context(live.follow(trial, directory, []))
            if trial.id == 1:
                followed.show(pane)
        await eventually(lambda: time.now > began + 2, "two seconds")
    return sum(moment < began + 2 for moment in pane.looks)


async def test_a_slow_look_does_not_put_off_the_next_one(tmp_path: Path) -> None:
    assert await _looks_in_two_seconds(3, tmp_path) >= 5


async def test_a_crowd_is_looked_at_for_a_fifth_of_the_time(tmp_path: Path) -> None:
    assert 1 <= await _looks_in_two_seconds(200, tmp_path) <= 3
