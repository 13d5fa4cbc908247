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
from seatrial.growing_files import FileView
from seatrial.testing.memory_store import MemoryStore
from tests.contracts.store.samples import MINUTE, NOON, passed, submit


class WatchedStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[int] = []

    async def append_output(self, pieces: Sequence[NewOutput], now: object) -> None:
        self.writes.append(len(pieces))
        await super().append_output(pieces, NOON)


class Pane:
    """A window that shows one file."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    async def look(self, seen: Mapping[str, int], wanted: Callable[[str], bool]) -> Sequence[FileView]:
        start = seen.get("agent/pane.txt", 0)
        return [FileView("agent/pane.txt", start, len(self.text), self.text[start:])]


class SlowPane:
    """A window of a busy machine: each look at it takes a while."""

    def __init__(self) -> None:
        self.looks = 0

    async def look(self, seen: Mapping[str, int], wanted: Callable[[str], bool]) -> Sequence[FileView]:
        self.looks += 1
        await asyncio.sleep(0.2)
        return []


def log_of(store: MemoryStore) -> LiveLog:
    return LiveLog(store, system_clock, every_sec=0.02, first_after_sec=0.05, linger_sec=0.2)


async def running(store: MemoryStore, trials: int = 1) -> list[Trial]:
    await submit(store, trials)
    return await store.claim("w", MINUTE, trials, NOON)


async def test_many_attempts_are_told_in_one_write_and_their_rings_are_dropped(tmp_path: Path) -> None:
    store = WatchedStore()
    trials = await running(store, 30)
    async with log_of(store) as live:
        followed = [live.follow(trial, tmp_path / str(trial.id), ["sk-canary-1"]) for trial in trials]
        open_ones = [one.__enter__() for one in followed]
        for trial in trials:
            (tmp_path / str(trial.id)).mkdir()
            (tmp_path / str(trial.id) / "trial.log").write_text(f"{trial.id} sk-canary-1\n")
        open_ones[0].show(Pane(b"inside"))
        await asyncio.sleep(0.3)
        told = await store.output([trial.id for trial in trials])
        assert sorted(piece.text for piece in told) == sorted(
            ["inside", *(f"{trial.id} [REDACTED]\n" for trial in trials)]
        )
        assert len(store.writes) <= 6  # for 31 pieces
        with (tmp_path / str(trials[0].id) / "trial.log").open("a") as file:
            file.write("the last words")
        await live.catch_up(open_ones[0])
        assert "".join(piece.text for piece in await store.output([trials[0].id])).endswith("the last words")
        for trial, one in zip(trials, followed, strict=True):
            one.__exit__(None, None, None)
            await store.finish(trial.id, trial.attempt, passed(), NOON)
            live.ended(trial)
        async with asyncio.timeout(10):
            while await store.output([trial.id for trial in trials]):
                await asyncio.sleep(0.05)


async def test_an_attempt_that_is_over_at_once_writes_nothing(tmp_path: Path) -> None:
    store = WatchedStore()
    (trial,) = await running(store)
    async with log_of(store) as live:
        (tmp_path / "trial.log").write_text("quick")
        with live.follow(trial, tmp_path, []) as followed:
            await live.catch_up(followed)
        await store.finish(trial.id, trial.attempt, passed(), NOON)
        live.ended(trial)
        await asyncio.sleep(0.2)
    assert store.writes == []


async def _looks_in_two_seconds(trials: int, directory: Path) -> int:
    store = WatchedStore()
    pane = SlowPane()
    async with log_of(store) as live, contextlib.AsyncExitStack() as following:
        for trial in await running(store, trials):
            followed = following.enter_context(live.follow(trial, directory, []))
            if trial.id == 1:
                followed.show(pane)
        await asyncio.sleep(2.0)
    return pane.looks


async def test_a_slow_look_does_not_put_off_the_next_one(tmp_path: Path) -> None:
    assert await _looks_in_two_seconds(3, tmp_path) >= 5


async def test_a_crowd_is_looked_at_for_a_fifth_of_the_time(tmp_path: Path) -> None:
    assert 1 <= await _looks_in_two_seconds(200, tmp_path) <= 3
