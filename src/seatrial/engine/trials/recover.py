"""What was lost is found again: trials of silent workers are queued anew, or ended once that happened too often."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from seatrial.domain.result import Result
from seatrial.domain.trial import Cause, Outcome, Trial, TrialState
from seatrial.engine.clock import Clock
from seatrial.engine.trials.lease_trust import LeaseTrust
from seatrial.errors import StaleAttempt, StoreUnavailable
from seatrial.ports.queue import Queue
from seatrial.ports.store import Store, TrialFilter


class Recovery:
    """Any process may run it, several at once: each step is a compare-and-set in the store."""

    def __init__(
        self, store: Store, queue: Queue, clock: Clock, worker_is_dead: Callable[[str], bool], trust: LeaseTrust
    ) -> None:
        self._store = store
        self._queue = queue
        self._clock = clock
        self._worker_is_dead = worker_is_dead
        self.trust = trust

    def noticed(self, fault: Exception) -> None:
        """For whoever else asks the store: when it does not answer, leases prove nothing for a while."""
        if isinstance(fault, StoreUnavailable):
            self.trust.lost()

    async def late(self) -> list[Trial]:
        """Running trials whose lease ran out, whatever that proves."""
        try:
            found = await self._store.expired(self._clock())
        except StoreUnavailable:
            self.trust.lost()
            raise
        self.trust.heard(self._clock())
        return found

    async def sweep(self) -> int:
        """Handles every trial whose worker is known to be dead, and those whose lease ran out while it could have been
        renewed; says how many. A cancelled trial ends as soon as its lease is over."""
        late = await self.late()
        expired = {trial.id: trial for trial in late if self.trust.holds or trial.cancel_requested}
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
