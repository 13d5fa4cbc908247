"""Trials per second through worker, store and blobs with a runner that does nothing, and with a full store.

``benchmarks.store`` measures the store by itself.
"""

from __future__ import annotations

import time
from pathlib import Path

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


async def measure(place: Place) -> list[Row]:
    full = place.count(10_000, 1_000)
    async with fresh_home(place) as installation:
        await _cost(installation, 100)
        few = await _cost(installation, _PIECE)
        wall = time.perf_counter()
        await _cost(installation, full)
        rate = full / (time.perf_counter() - wall)
        many = await _cost(installation, _PIECE)
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


async def _cost(installation: Installation, trials: int, task: Path = TRIVIAL) -> float:
    """Seconds of CPU a trial, threads included: steadier than the clock on a machine that does other things too."""
    jobs = await submit(installation, task, trials)
    worker = assemble_worker(installation, FakeRunner(files=_FILES), _IN_FLIGHT)
    before = time.process_time()
    await work_off(installation, worker, jobs)
    return (time.process_time() - before) / trials
