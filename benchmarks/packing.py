"""Forty trials that declare 2 GB each, with ``--concurrency auto`` and with fixed counts in the same run.

Each trial fills three quarters of what it declares, and then waits as an agent waits for its model. So a count that the
machine's memory cannot hold would not be faster but have the kernel kill trials, and is not among those compared:
twenty at once need 30 GB.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.homes import fresh_home, submit, work_off
from benchmarks.place import Place, copy_task
from benchmarks.row import Row
from seatrial.domain.trial import Mark
from seatrial.ports.store import TrialFilter
from seatrial.sizing import packing_here
from seatrial.wiring import Installation, make_worker

_TRIALS = 40
_DECLARED_MB, _TOUCHED_MB = 2048, 1536
_COUNTS = (4, 6, 8, 10)
_AUTO = 0
_SLACK = 1.1
_ROUNDS = 2
_SOLVE = f"""perl -e 'my $held = ""; vec($held, ({_TOUCHED_MB} << 20) - 1, 8) = 1; sleep 5;'
echo 42 > /app/answer.txt"""


async def measure(place: Place) -> list[Row]:
    trials = place.count(_TRIALS, 8)
    task = copy_task(place, "two-gigabytes", solve=_SOLVE, limit_sec=600)
    text = (task / "task.toml").read_text()
    (task / "task.toml").write_text(text.replace("memory_mb = 512", f"memory_mb = {_DECLARED_MB}"))
    async with fresh_home(place) as installation:
        room = packing_here(installation.settings).size
        await _run(installation, task, 2, 2)  # builds what is built once
        found: dict[int, list[_Seen]] = {count: [] for count in (_AUTO, *_COUNTS)}
        turns = [_AUTO, *_COUNTS]
        for turn in range(place.count(_ROUNDS, 1)):  # in turns: a neighbour's burst then meets all of them alike
            for count in turns[2 * turn :] + turns[: 2 * turn]:  # the first of a round finds memory to be cleared
                found[count].append(await _run(installation, task, trials, count))
    automatic = min(seen.seconds for seen in found[_AUTO])
    killed = sum(seen.killed for seen in found[_AUTO])
    fixed = {count: min(seen.seconds for seen in found[count]) for count in _COUNTS}
    best = min(fixed, key=lambda count: fixed[count])
    ratio = automatic / fixed[best]
    others = ", ".join(f"{count}: {seconds:.0f} s" for count, seconds in fixed.items())
    what = f"{trials} trials that declare {_DECLARED_MB >> 10} GB, auto on {room}"
    return [
        Row(f"{what}: killed for memory", f"{killed}", "0", killed == 0),
        Row(
            f"{what}: until the last one ended",
            f"{automatic:.0f} s",
            f"<= {_SLACK:g} × the best fixed count",
            ratio <= _SLACK,
            f"{best} at once ({others})",
            ratio,
        ),
    ]


@dataclass(frozen=True, slots=True)
class _Seen:
    seconds: float
    killed: int


async def _run(installation: Installation, task: Path, trials: int, count: int) -> _Seen:
    jobs = await submit(installation, task, trials)
    seconds = await work_off(installation, make_worker(installation, count), jobs)
    rows = [row for job in jobs async for row in installation.store.trials.each(TrialFilter(job_id=job.id))]
    return _Seen(seconds, sum(row.result is not None and Mark.MEMORY_KILL in row.result.marks for row in rows))
