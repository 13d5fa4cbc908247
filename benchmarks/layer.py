"""What worker, store, blobs and runner add to a bare Harbor ``Trial`` on the same sandbox, at 1 and at 50 in flight."""

from __future__ import annotations

from benchmarks.homes import fresh_home, submit, work_off
from benchmarks.place import TRIVIAL, Place
from benchmarks.row import Row, within
from benchmarks.trials import OCI, our_subject, run_trial, seconds_for
from seatrial.wiring import make_worker


async def measure(place: Place) -> list[Row]:
    subject = our_subject(place, "oci", OCI, TRIVIAL, place.options())
    await run_trial(place, subject)
    await _through_worker(place, 2, 1)  # what is loaded once per process is not a trial's cost
    rows = []
    for in_flight, count in ((1, place.count(20, 5)), (50, place.count(200, 50))):
        bare = await seconds_for(place, subject, count, in_flight)
        ours = await _through_worker(place, count, in_flight)
        bare += await seconds_for(place, subject, count, in_flight)
        ours += await _through_worker(place, count, in_flight)
        per_trial = 2 * count
        rows.append(
            within(f"trial, {in_flight} in flight", ours / per_trial, "bare Harbor Trial", bare / per_trial, 1.3)
        )
    return rows


async def _through_worker(place: Place, count: int, in_flight: int) -> float:
    async with fresh_home(place) as installation:
        jobs = await submit(installation, TRIVIAL, count)
        return await work_off(installation, make_worker(installation, in_flight), jobs)
