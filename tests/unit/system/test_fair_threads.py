"""Short work never waits behind long work, and long work takes turns."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest

from seatrial.system.fair_threads import FairThreads, yield_turn


class Gate:
    """Long work that goes on until it is opened."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.turns: Counter[int] = Counter()

    def work(self, number: int) -> int:
        while not self.open.is_set():
            self.turns[number] += 1
            yield_turn()
        return number


async def test_short_work_is_done_while_more_long_work_goes_on_than_there_are_places() -> None:
    threads, gate = FairThreads("test", quick=2, long=1, slice_sec=0.001), Gate()
    long = [asyncio.create_task(threads.run(gate.work, number)) for number in range(6)]
    assert [await threads.run(int, str(number)) for number in range(20)] == list(range(20))
    assert not any(task.done() for task in long)
    gate.open.set()
    assert await asyncio.gather(*long) == list(range(6))


async def test_long_work_takes_turns() -> None:
    threads, gate = FairThreads("test", quick=4, long=1, slice_sec=0.001), Gate()
    long = [asyncio.create_task(threads.run(gate.work, number)) for number in range(4)]
    first: Counter[int] = Counter()
    while len(first) < 4:  # everybody has begun; from now on each gets on
        await asyncio.sleep(0.001)
        first = Counter(gate.turns)
    while any(gate.turns[number] <= first[number] for number in range(4)):
        await asyncio.sleep(0.001)
    gate.open.set()
    await asyncio.gather(*long)


async def test_places_and_tickets_come_back_whatever_happens() -> None:
    threads = FairThreads("test", quick=1, long=1, slice_sec=0.0)

    def crash() -> None:
        yield_turn()
        raise RuntimeError("on purpose")

    for _ in range(5):
        with pytest.raises(RuntimeError, match="on purpose"):
            await threads.run(crash)
    gate = Gate()
    busy = asyncio.create_task(threads.run(gate.open.wait))
    waiting = asyncio.create_task(threads.run(int, "1"))
    await asyncio.sleep(0)
    waiting.cancel()
    gate.open.set()
    assert await busy
    assert await threads.run(int, "2") == 2
