"""Installations in scratch homes, for benchmarks that go through the real worker, store and blobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.place import Place
from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.domain.task import TaskRef
from seatrial.settings import Settings
from seatrial.wiring import Installation, open_installation
from seatrial.worker import Worker

_LOOK_EVERY_SEC = 0.01


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
    """Seconds from the worker's start until no trial is left; all of them must have passed."""
    ids = [job.id for job in jobs]
    wanted = sum(job.spec.attempts for job in jobs)
    started = time.perf_counter()
    working = asyncio.create_task(worker.run())
    while True:
        counts = (await installation.store.counts(ids)).values()
        if working.done() or not any(count.queued + count.running for count in counts):
            break
        await asyncio.sleep(_LOOK_EVERY_SEC * (1 + wanted / 500))
    seconds = time.perf_counter() - started
    worker.leave()
    await working
    passed = sum(count.passed for count in (await installation.store.counts(ids)).values())
    if passed != wanted:
        raise RuntimeError(f"{passed} of {wanted} trials passed.")
    return seconds
