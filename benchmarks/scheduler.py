"""Trials per second through worker, store and blobs with a runner that does nothing, and with a full store.

``benchmarks.store`` measures the store by itself.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from benchmarks.homes import fresh_home, submit, work_off
from benchmarks.place import TRIVIAL, Place
from benchmarks.row import Row
from seatrial.testing.fake_runner import FakeRunner
from seatrial.wiring import Installation, assemble_worker

_LEAST_RATE = 200.0
_FLAT = 0.2
_IN_FLIGHT = 40
_PIECE, _ROUNDS = 100, 9
_FILES = {"result.json": b"{}" * 500, "verifier/test-stdout.txt": b"ok\n" * 100}


@dataclass(frozen=True, slots=True)
class _Spent:
    """On one trial, by the clock and by the processor."""

    seconds: float
    cpu_seconds: float


async def measure(place: Place) -> list[Row]:
    full = place.count(10_000, 1_000)
    async with fresh_home(place) as small, fresh_home(place) as large:
        await _spend(small, 100)
        rate = 1 / (await _spend(large, full)).seconds
        few, many = await _costs(small, large)
    change = many / few - 1
    return [
        Row("trials per second, fake runner, SQLite", f"{rate:.0f}/s", f">= {_LEAST_RATE:g}/s", rate >= _LEAST_RATE),
        Row(
            f"cost of a trial with {full:,} in the store",
            f"{many * 1000:.2f} ms of CPU",
            f"± {_FLAT:.0%}",
            abs(change) <= _FLAT,
            f"with 100 to {100 + _PIECE * _ROUNDS:,} in it {few * 1000:.2f} ms",
            many / few,
        ),
    ]


async def _costs(*installations: Installation) -> list[float]:
    """Processor seconds of one trial in each, taken in turns: a neighbour's burst then meets all of them alike."""
    rounds = [[(await _spend(one, _PIECE)).cpu_seconds for one in installations] for _ in range(_ROUNDS)]
    return [statistics.median(costs) for costs in zip(*rounds, strict=True)]


async def _spend(installation: Installation, trials: int) -> _Spent:
    """Processor time counts all threads, and is steadier than the clock on a machine that does other things too."""
    jobs = await submit(installation, TRIVIAL, trials)
    worker = assemble_worker(installation, FakeRunner(files=_FILES), _IN_FLIGHT)
    before = time.process_time()
    seconds = await work_off(installation, worker, jobs)
    return _Spent(seconds / trials, (time.process_time() - before) / trials)
