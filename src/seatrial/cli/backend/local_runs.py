"""Runs a job in this process with its own worker, live progress and result. For ``run``, ``resume`` and ``retry``.

An interrupt stops the worker, requeues running trials and prints how to continue. Ended trials are kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from itertools import count
from typing import TYPE_CHECKING

from seatrial.cli.view.progress import show_progress
from seatrial.cli.view.say import say
from seatrial.cli.view.summary import INTERRUPTED, exit_status, print_outcome
from seatrial.domain.job import Job
from seatrial.engine.reports.progress import progress_of
from seatrial.engine.reports.reporting import report_job
from seatrial.ports.store import TrialFilter

if TYPE_CHECKING:
    from seatrial.cli.backend.local import Hire
    from seatrial.wiring import Installation
    from seatrial.worker import Worker

_LOOK_EVERY_SEC = 0.2
_PACE_EVERY_LOOKS = 5
"""The pace costs the store more than the counts."""


async def see_job_through(session: Installation, hire: Hire, job: Job, as_json: bool) -> int:
    """Runs until the job ends or the user interrupts; returns the exit status."""
    started = time.monotonic()
    capacity = job.spec.concurrency or session.settings.worker_concurrency
    worker = hire(capacity, job.id)
    interrupted = await _drive(session, worker, job, quiet=as_json)
    rows = [row async for row in session.store.trials(TrialFilter(job_id=job.id))]
    wall = time.monotonic() - started
    print_outcome(job, await report_job(session.store, job), rows, wall, as_json)
    if interrupted:
        say(f"Interrupted. Continue with: seatrial job resume {job.id}", err=True)
        return INTERRUPTED
    return exit_status(rows)


async def _drive(session: Installation, worker: Worker, job: Job, quiet: bool) -> bool:
    """Runs the worker until all trials of the job have ended; returns whether it was interrupted."""
    working = asyncio.create_task(worker.run(), name="worker")
    watching = asyncio.create_task(_until_ended(session, job, quiet), name="watch")
    interrupt = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt.set)
    interrupting = asyncio.create_task(interrupt.wait())
    try:
        await asyncio.wait({working, watching, interrupting}, return_when=asyncio.FIRST_COMPLETED)
        if interrupt.is_set():
            working.cancel()
        else:
            worker.leave()
        with contextlib.suppress(asyncio.CancelledError):
            await working
    finally:
        for task in (watching, interrupting, working):
            task.cancel()
        await asyncio.gather(watching, interrupting, working, return_exceptions=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    return interrupt.is_set()


async def _until_ended(session: Installation, job: Job, quiet: bool) -> None:
    with show_progress(job, quiet) as show:
        for look in count():
            counts = (await session.store.counts([job.id]))[job.id]
            if look % _PACE_EVERY_LOOKS == 0 or counts.done:
                found = await progress_of(session.store, job, counts, session.clock())
            show(counts, found)
            if not counts.moving:
                return
            await asyncio.sleep(_LOOK_EVERY_SEC)
