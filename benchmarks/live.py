"""Trials per second with nobody listening and with 500 who listen to the whole job, in turns in one run.

API and worker are processes of their own, as in ``seatrial up``; the runner does nothing but wait a moment, so that
whatever the listeners cost shows in full.
"""

from __future__ import annotations

import asyncio
import statistics
from contextlib import AsyncExitStack

from tests.crowd_of_listeners import Ear, listening
from tests.live_processes import api_process, settings_of, submit, worker_process

from benchmarks.place import Place
from benchmarks.row import Row
from seatrial.domain.job import Job
from seatrial.ports.store import TrialFilter
from seatrial.wiring import Installation, open_installation

_LISTENERS = 500
_LEAST_RATIO = 0.9
_TRIAL_SEC = 0.5
_AT_ONCE = 20


async def measure(place: Place) -> list[Row]:
    home = place.folder("home")
    trials, rounds = place.count(200, 60), place.count(3, 1)
    with api_process(home) as (address, _):
        async with open_installation(settings_of(home)) as installation:
            with worker_process(home, _TRIAL_SEC, _AT_ONCE):
                await _rate(installation, address, _AT_ONCE, 0)
                pairs = [
                    [await _rate(installation, address, trials, listeners) for listeners in (0, _LISTENERS)]
                    for _ in range(rounds)
                ]
    alone, heard = (statistics.median(rates) for rates in zip(*pairs, strict=True))
    ratio = statistics.median(heard / alone for alone, heard in pairs)
    return [
        Row(
            f"trials per second with {_LISTENERS} live listeners",
            f"{heard:.1f}/s",
            f">= {_LEAST_RATIO:g} ×",
            ratio >= _LEAST_RATIO,
            f"with none {alone:.1f}/s",
            ratio,
        )
    ]


async def _rate(installation: Installation, address: str, trials: int, listeners: int) -> float:
    """By the store's own times, from the first claim to the last end; everybody must have heard everything."""
    job = await submit(installation, trials, hold=True)
    held = [row.trial.id async for row in installation.store.trials.each(TrialFilter(job_id=job.id))]
    async with AsyncExitStack() as stack:
        ears: list[Ear] = []
        if listeners:
            ears = await stack.enter_async_context(listening(address, f"/jobs/{job.id}/events", listeners))
            await asyncio.sleep(2)
        await installation.jobs.release(job, held)
        while (await installation.store.jobs.get(job.id)).ended_at is None or any(ear.ended_at is None for ear in ears):
            await asyncio.sleep(0.2)
    await _check(installation, job, ears)
    attempts = [a_try for trial_id in held for a_try in await installation.store.trials.tries(trial_id)]
    ends = [a_try.ended_at for a_try in attempts if a_try.ended_at is not None]
    return trials / (max(ends) - min(a_try.started_at for a_try in attempts)).total_seconds()


async def _check(installation: Installation, job: Job, ears: list[Ear]) -> None:
    wanted = [event.seq for event in await installation.store.events.read(job_id=job.id, limit=100_000)]
    deaf = sum(ear.seen != wanted for ear in ears)
    if deaf:
        raise RuntimeError(f"{deaf} of {len(ears)} listeners did not hear everything.")
