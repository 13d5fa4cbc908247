"""What worker, store, blobs and runner add to a bare Harbor ``Trial`` on the same sandbox, at 1 and at 50 in flight.

Both sides take turns in short rounds, and the middle one of the rounds' ratios counts: whatever else the machine does
meets both of them alike.
"""

from __future__ import annotations

import statistics

from benchmarks.homes import fresh_home, submit, work_off
from benchmarks.place import TRIVIAL, Place
from benchmarks.row import Row, shown
from benchmarks.trials import OCI, Subject, our_subject, run_trial, seconds_for
from seatrial.wiring import Installation, make_worker

_TIMES = 1.3


async def measure(place: Place) -> list[Row]:
    subject = our_subject(place, "oci", OCI, TRIVIAL, place.options())
    await run_trial(place, subject)
    async with fresh_home(place) as installation:
        await _through_worker(installation, 2, 1)  # what is loaded once per process is not a trial's cost
        alone = await _compared(place, installation, subject, 1, count=10, rounds=place.count(11, 5))
        crowded = await _compared(place, installation, subject, 50, count=100, rounds=place.count(5, 3))
    return [alone, crowded]


async def _compared(
    place: Place, installation: Installation, subject: Subject, in_flight: int, *, count: int, rounds: int
) -> Row:
    bare, ours = [], []
    for _ in range(rounds):
        bare.append(await seconds_for(place, subject, count, in_flight) / count)
        ours.append(await _through_worker(installation, count, in_flight) / count)
    ratio = statistics.median(mine / peer for mine, peer in zip(ours, bare, strict=True))
    return Row(
        f"trial, {in_flight} in flight (middle of {len(ours)} rounds)",
        shown(statistics.median(ours)),
        f"<= {_TIMES:g} ×",
        ratio <= _TIMES,
        f"bare Harbor Trial {shown(statistics.median(bare))}",
        ratio,
    )


async def _through_worker(installation: Installation, count: int, in_flight: int) -> float:
    jobs = await submit(installation, TRIVIAL, count)
    return await work_off(installation, make_worker(installation, in_flight), jobs)
