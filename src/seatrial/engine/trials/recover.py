"""What was lost is found again: trials of silent workers are queued anew, or ended once that happened too often."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from seatrial.domain.result import Result
from seatrial.domain.trial import Cause, Outcome, Trial, TrialState
from seatrial.engine.clock import Clock
from seatrial.errors import StaleAttempt
from seatrial.ports.queue import Queue
from seatrial.ports.store import Store, TrialFilter


class Recovery:
    """Any worker may run it, several at once: each step is a compare-and-set in the store."""

    def __init__(self, store: Store, queue: Queue, clock: Clock, worker_is_dead: Callable[[str], bool]) -> None:
        self._store = store
        self._queue = queue
        self._clock = clock
        self._worker_is_dead = worker_is_dead

    async def sweep(self) -> int:
        """Handles every trial whose lease ran out or whose worker is known to be dead; says how many."""
        expired = {trial.id: trial for trial in await self._store.expired(self._clock())}
        async for row in self._store.trials(TrialFilter(states=(TrialState.RUNNING,))):
            if row.trial.worker is not None and self._worker_is_dead(row.trial.worker):
                expired.setdefault(row.trial.id, row.trial)
        for trial in expired.values():
            with contextlib.suppress(StaleAttempt):
                await self._recover(trial)
        await self._store.drop_output(tuple(expired))
        if expired:
            await self._queue.announce()
        return len(expired)

    async def _recover(self, trial: Trial) -> None:
        job = await self._store.job(trial.job_id)
        now = self._clock()
        if trial.cancel_requested:
            result = Result(outcome=Outcome.CANCELLED, message="Cancelled; its worker was lost before it could stop.")
            await self._store.finish(trial.id, trial.attempt, result, now)
            return
        message = f"Worker {trial.worker} went silent during attempt {trial.attempt}."
        result = Result(outcome=Outcome.ERROR, cause=Cause.WORKER_LOST, message=message)
        retry = job.spec.retry
        if not retry.allows(Cause.WORKER_LOST, attempts_made=1):  # a job that wants one try gets one, whoever was lost
            await self._store.finish(trial.id, trial.attempt, result, now)
            return
        last = not retry.allows(Cause.WORKER_LOST, trial.attempts_made)
        await self._store.lose_worker(trial.id, trial.attempt, result, last, now)
