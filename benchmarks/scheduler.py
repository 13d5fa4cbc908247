"""Trials per second through worker, store and blobs with a runner that does nothing, and with a full store.

``benchmarks.store`` measures the store by itself.
"""

from __future__ import annotations

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
_PIECE = 400
_FILES = {"result.json": b"{}" * 500, "verifier/test-stdout.txt": b"ok\n" * 100}


@dataclass(frozen=True, slots=True)
class _Spent:
    """On one trial, by the clock and by the processor."""

    seconds: float
    cpu_seconds: float


async def measure(place: Place) -> list[Row]:
    full = place.count(10_000, 1_000)
    async with fresh_home(place) as warm_up:
        await _spend(warm_up, _PIECE)
    async with fresh_home(place) as installation:
        await _spend(installation, 100)
        few = (await _spend(installation, _PIECE)).cpu_seconds
        rate = 1 / (await _spend(installation, full)).seconds
        many = (await _spend(installation, _PIECE)).cpu_seconds
    change = many / few - 1
    return [
        Row("trials per second, fake runner, SQLite", f"{rate:.0f}/s", f">= {_LEAST_RATE:g}/s", rate >= _LEAST_RATE),
        Row(
            f"cost of a trial with {full:,} in the store",
            f"{many * 1000:.2f} ms of CPU",
            f"± {_FLAT:.0%}",
            abs(change) <= _FLAT,
            f"with 100 in it {few * 1000:.2f} ms",
            many / few,
        ),
    ]


async def _spend(installation: Installation, trials: int) -> _Spent:
    """Processor time counts all threads, and is steadier than the clock on a machine that does other things too."""
    jobs = await submit(installation, TRIVIAL, trials)
    worker = assemble_worker(installation, FakeRunner(files=_FILES), _IN_FLIGHT)
    before = time.process_time()
    seconds = await work_off(installation, worker, jobs)
    return _Spent(seconds / trials, (time.process_time() - before) / trials)
