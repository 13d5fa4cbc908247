"""Recovers trials of lost workers: queues them again, or ends them after too many losses.

An expired lease means that its worker is gone only if the worker could have renewed it. No worker can renew while the
store is away, while the machine sleeps, or when its clock is changed. After each such event, workers get time to renew
before their trials are taken.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from seatrial.domain.fleet.worker_death import Death
from seatrial.domain.result import Failure, Result, Usage
from seatrial.domain.trial import Cause, Outcome, Trial, TrialState
from seatrial.engine.clock import Clock, uptime
from seatrial.engine.trials.autopsy import Autopsy
from seatrial.errors import StaleTry, StoreUnavailable
from seatrial.ports.store import Loss, Store, TrialFilter
from seatrial.ports.wake_up import WakeUp

_OVERHEARD = timedelta(seconds=5)
"""A trial that is due for this long is announced again. Its announcement may be lost, or all workers may be busy."""
_HINTS_REPEATED = 10


class LeaseTrust:
    """There is one per process that recovers trials. A new process waits first, because it knows nothing yet."""

    def __init__(
        self, lease_sec: float, heartbeat_sec: float, reap_sec: float, elapsed: Callable[[], float] = uptime
    ) -> None:
        self.grace_sec = lease_sec + heartbeat_sec
        self._longest_gap_sec = reap_sec + max(heartbeat_sec, lease_sec / 3)
        self._drift_sec = lease_sec / 3
        self._elapsed = elapsed
        self._last: tuple[float, datetime] | None = None
        self._since: float | None = None

    @property
    def holds(self) -> bool:
        return self._since is not None and self._elapsed() - self._since >= self.grace_sec

    def heard(self, now: datetime) -> None:
        """Notes that the store answered at this time."""
        moment = self._elapsed()
        if self._last is None or self._is_odd(moment, now, *self._last):
            self._since = moment
        self._last = (moment, now)

    def lost(self) -> None:
        """Notes that the store did not answer. Trust starts again with its next answer."""
        self._last = self._since = None

    def _is_odd(self, moment: float, now: datetime, last_moment: float, last_now: datetime) -> bool:
        passed = moment - last_moment
        jumped = abs((now - last_now).total_seconds() - passed)
        return passed > self._longest_gap_sec or jumped > self._drift_sec


@dataclass(frozen=True)
class Recovery:
    """Several processes may run it at once, because each step is a compare-and-set in the store."""

    store: Store
    wake_up: WakeUp
    clock: Clock
    worker_is_dead: Callable[[str], bool]
    trust: LeaseTrust
    autopsy: Autopsy | None = None
    """Without one, no death is known."""
    used_by: Callable[[Trial], Awaitable[Usage]] | None = None
    """What a lost try used of models, as far as this machine knows."""
    is_kept: Callable[[Trial], Awaitable[bool]] | None = None
    """Whether the agent of a lost try had ended, and its final state is kept for the next try."""
    settle: Callable[[], Awaitable[object]] | None = None
    """Counts what dead workers have spent, before their trials spend more elsewhere."""
    remove_folders: Callable[[], Awaitable[object]] | None = None
    """Removes folders of dead workers. Those of tries that were not recovered yet must stay."""

    def noticed(self, fault: Exception) -> None:
        """Other duties report their errors here. After an outage of the store, leases prove nothing for a while."""
        if isinstance(fault, StoreUnavailable):
            self.trust.lost()

    async def late(self) -> list[Trial]:
        """Running trials with an expired lease."""
        try:
            found = await self.store.trials.expired(self.clock())
        except StoreUnavailable:
            self.trust.lost()
            raise
        self.trust.heard(self.clock())
        return found

    async def sweep(self) -> int:
        """Recovers trials whose worker is dead, and those whose lease expired although it could have been renewed.
        Returns how many. A cancelled trial ends as soon as its lease has expired."""
        if self.settle is not None:
            await self.settle()
        late = await self.late()
        lost = {trial.id: trial for trial in late if self.trust.holds or trial.cancel_requested}
        expired = {trial.worker for trial in lost.values()}
        async for row in self.store.trials.each(TrialFilter(states=(TrialState.RUNNING,))):
            if row.trial.worker is not None and self.worker_is_dead(row.trial.worker):
                lost.setdefault(row.trial.id, row.trial)
        recovered: list[int] = []
        for worker in dict.fromkeys(trial.worker for trial in lost.values()):
            held = [trial for trial in lost.values() if trial.worker == worker]
            recovered += await self._recover(worker or "", held, patient=worker not in expired)
        await self.store.output.drop(tuple(recovered))
        if recovered and self.remove_folders is not None:
            await self.remove_folders()
        if recovered or await self._was_overheard():
            await self.wake_up.announce(max(len(recovered), _HINTS_REPEATED))
        return len(recovered)

    async def _was_overheard(self) -> bool:
        """Whether a trial has been due for so long that its announcement may be lost."""
        return await self.store.trials.is_due_since(self.clock() - _OVERHEARD)

    async def _recover(self, worker: str, held: Sequence[Trial], *, patient: bool) -> list[int]:
        """All trials of one lost worker, or none as long as it is not known how the worker died."""
        death = await self.autopsy.of(worker, patient=patient) if self.autopsy else Death.UNKNOWN
        if death is None:
            return []
        now = self.clock()
        losses = []
        for trial in held:
            with contextlib.suppress(StaleTry):
                loss = await self._loss(trial, death, now)
                losses += [loss] if loss is not None else []
        await self.store.trials.lose_worker(worker, losses, death, now)
        await self.store.workers.died(worker, death)
        return [trial.id for trial in held]

    async def _loss(self, trial: Trial, death: Death, now: datetime) -> Loss | None:
        """What the store is told about one try. ``None`` if the trial ended here."""
        usage = await self.used_by(trial) if self.used_by is not None else Usage()
        if trial.cancel_requested:
            message = "Cancelled; its worker was lost before it could stop."
            result = Result(outcome=Outcome.CANCELLED, message=message, usage=usage)
            await self.store.trials.finish(trial.id, trial.try_number, result, now)
            return None
        result = _lost(trial, death, usage)
        retry = (await self.store.jobs.get(trial.job_id)).spec.retry
        if not retry.allows(
            Cause.WORKER_LOST, tries_made=1
        ):  # a job with one try gets one try, also after a lost worker
            await self.store.trials.finish(trial.id, trial.try_number, result, now)
            return None
        last = not retry.allows(Cause.WORKER_LOST, trial.tries_made)
        if not last and self.is_kept is not None and await self.is_kept(trial):
            result = _lost(trial, death, Usage())  # the try that grades it tells what it used
        return Loss(trial_id=trial.id, try_number=trial.try_number, result=result, last=last)


def _lost(trial: Trial, death: Death, usage: Usage) -> Result:
    message = f"Worker {trial.worker} {death.words} during try {trial.try_number}."
    failure = Failure(type=f"WorkerLost:{death}", message=message)
    return Result(outcome=Outcome.ERROR, cause=Cause.WORKER_LOST, message=message, failure=failure, usage=usage)
