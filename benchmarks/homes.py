"""Installations in scratch homes, for benchmarks that go through the real worker, store and blobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.place import Place
from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome
from seatrial.ports.store import TrialFilter
from seatrial.settings import Settings
from seatrial.wiring import Installation, open_installation
from seatrial.worker import Worker

_LOOK_EVERY_SEC = 0.2
"""As often as ``seatrial run`` does; more often would be a load of its own."""


@asynccontextmanager
async def fresh_home(place: Place) -> AsyncIterator[Installation]:
    settings = Settings(home=place.folder("home"), cache=place.cache, sandbox="oci")
    async with open_installation(settings) as installation:
        yield installation


async def submit(installation: Installation, task: Path, trials: int) -> list[Job]:
    """Oracle trials of one task; a job takes at most a thousand."""
    tasks = await installation.library.add(task)
    refs = tuple(TaskRef(name=one.name, digest=one.digest) for one in tasks)
    jobs = []
    while trials > 0:
        attempts = min(trials, 1000)
        spec = JobSpec(tasks=refs, agents=(AgentSpec(name="oracle"),), attempts=attempts, sandbox="oci")
        jobs.append(await installation.submission.submit(spec))
        trials -= attempts
    return jobs


async def work_off(installation: Installation, worker: Worker, jobs: list[Job]) -> float:
    """Seconds from the worker's start until its last trial ended, as the store noted it; all must have passed."""
    ids = [job.id for job in jobs]
    wanted = sum(job.spec.attempts for job in jobs)
    started = installation.clock()
    working = asyncio.create_task(worker.run())
    while True:
        counts = (await installation.store.jobs.counts(ids)).values()
        if working.done() or not any(count.queued + count.running for count in counts):
            break
        await asyncio.sleep(_LOOK_EVERY_SEC)
    worker.leave()
    await working
    trials = [row.trial for job in ids async for row in installation.store.trials.each(TrialFilter(job_id=job))]
    ends = [trial.ended_at for trial in trials if trial.outcome is Outcome.PASSED and trial.ended_at is not None]
    if len(ends) != wanted:
        raise RuntimeError(f"{len(ends)} of {wanted} trials passed.")
    return (max(ends) - started).total_seconds()
