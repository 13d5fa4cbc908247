"""Hundreds of trials in flight in one worker: 750 that sleep 20 s, and the memory that 200 take."""

from __future__ import annotations

import asyncio

from benchmarks.command import Watched, run_job
from benchmarks.place import Place, copy_task
from benchmarks.row import Row

_SLEEP_SEC = 20
_TRIALS, _MOST_BYTES = 750, 1 << 30
_FEWER, _FEWER_BYTES = 200, 400 << 20


async def measure_many(place: Place) -> list[Row]:
    trials = place.count(_TRIALS, 40)
    seen = await asyncio.to_thread(_run, place, trials)
    summary = seen.summary
    left = f"{len(seen.leftovers)}: {seen.leftovers[0]}" if seen.leftovers else "none"
    what = f"{trials} trials that sleep {_SLEEP_SEC} s"
    return [
        Row(
            f"{what}: alive at the same moment",
            f"{seen.most_alive} (all over after {seen.seconds:.0f} s)",
            f"{trials}",
            seen.most_alive == trials,
        ),
        Row(
            f"{what}: passed",
            f"{summary['passed']} of {summary['trials']}",
            "all",
            summary["passed"] == summary["trials"] == trials,
        ),
        _memory(f"{what}: memory of the worker", seen, _MOST_BYTES),
        Row(f"{what}: left behind", left, "none", not seen.leftovers),
    ]


async def measure_memory(place: Place) -> list[Row]:
    trials = place.count(_FEWER, 20)
    seen = await asyncio.to_thread(_run, place, trials)
    return [_memory(f"memory of a worker with {seen.most_alive} trials in flight", seen, _FEWER_BYTES)]


def _run(place: Place, trials: int) -> Watched:
    task = copy_task(place, "sleeper", solve=f"sleep {_SLEEP_SEC}\necho 42 > /app/answer.txt", limit_sec=600)
    return run_job(place, task, trials)


def _memory(what: str, seen: Watched, most: int) -> Row:
    return Row(what, f"{seen.peak_bytes >> 20} MB at most", f"< {most >> 20} MB", 0 < seen.peak_bytes < most)
