"""The trials that a worker runs now: their tasks, their sandboxes and their leases.

The worker starts each trial that it claims here, asks for free slots before it claims more, and repeats ``renew`` and
``stop_cancelled`` in the background. Which trials to claim, and when to leave, only the worker knows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from seatrial.domain.trial import Trial
from seatrial.engine.clock import Clock
from seatrial.engine.duties import Duties
from seatrial.engine.trials.execute import Executor, Stop
from seatrial.engine.trials.trial_slots import TrialSlots
from seatrial.errors import StoreUnavailable
from seatrial.logs import noting
from seatrial.ports.store import RenewalReport, Store
from seatrial.ports.wake_up import WakeUp

log = logging.getLogger(__name__)

_SAVING_PATIENCE_SEC = 10.0
"""A stopped worker waits this long for results that are being recorded."""
_RENEWAL_SEC = 5.0
"""The least time that one renewal of leases may take before it is tried again."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose the leases are, and how long each is."""

    worker: str
    lease: timedelta

    @property
    def renewal_sec(self) -> float:
        """The timeout of one renewal. One request to a store that hangs must not use up the whole lease."""
        return max(_RENEWAL_SEC, self.lease.total_seconds() / 3)


class RunningTrials:
    """One per worker; its length is the number of trials that have not ended.

    A trial takes a slot while its sandbox exists. Its files and result are saved while the next trial runs. The worker
    holds at most twice its capacity, including trials that are being saved, so that a slow store slows it down.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        holder: Holder,
        executor: Executor,
        wake_up: WakeUp,
        slots: TrialSlots,
        duties: Duties,
        slot_freed: Callable[[], None],
    ) -> None:
        """``slot_freed`` is called whenever another trial may fit."""
        self._store = store
        self._clock = clock
        self._holder = holder
        self._executor = executor
        self._wake_up = wake_up
        self._slots = slots
        self._duties = duties
        self._slot_freed = slot_freed
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._held: dict[int, int] = {}
        """The number of each trial's try."""
        self._sandboxed: set[int] = set()
        self._reasons: dict[int, Stop] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def sandboxes(self) -> int:
        """How many trials have their sandbox; the others are being saved."""
        return len(self._sandboxed)

    @property
    def unused_slots(self) -> int:
        """How many slots have no trial of this process."""
        capacity = self._slots.count
        return min(capacity - len(self._sandboxed), 2 * capacity - len(self._tasks))

    def start(self, trial: Trial) -> None:
        """The trial was claimed and has a slot."""
        self._held[trial.id] = trial.try_number
        self._sandboxed.add(trial.id)
        task = asyncio.create_task(self._run(trial), name=f"trial-{trial.id}.{trial.try_number}")
        self._tasks[trial.id] = task
        task.add_done_callback(lambda _: self._ended(trial))
        self._duties.now("shown trials", lambda: self._wake_up.runs(trial))

    async def _run(self, trial: Trial) -> None:
        with noting(job_id=trial.job_id, trial_id=trial.id, **{"try": trial.try_number}):
            try:
                await self._executor.execute(
                    trial, lambda: self._reasons.get(trial.id), lambda: self._sandbox_gone(trial.id)
                )
            except Exception:
                # The executor should have caught it. The lease runs out, and recovery takes the trial from there.
                log.exception("Unexpected error in a trial")

    def _sandbox_gone(self, trial_id: int) -> None:
        self._sandboxed.discard(trial_id)
        self._duties.now("trial slots", lambda: self._slots.leave(trial_id))
        self._slot_freed()

    def _ended(self, trial: Trial) -> None:
        self._tasks.pop(trial.id, None)
        self._held.pop(trial.id, None)
        self._reasons.pop(trial.id, None)
        self._sandbox_gone(trial.id)
        self._duties.now("shown trials", lambda: self._wake_up.ended(trial))

    async def all_ended(self) -> None:
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def abandon(self) -> None:
        """Gives back the trials that have their sandbox, and waits a while for those that are being saved."""
        saving = [task for trial_id, task in self._tasks.items() if trial_id not in self._sandboxed]
        for trial_id in list(self._sandboxed):
            self._stop(trial_id, Stop.LEAVING)
        if saving:
            _, late = await asyncio.wait(saving, timeout=_SAVING_PATIENCE_SEC)
            for task in late:
                task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _stop(self, trial_id: int, why: Stop) -> None:
        """Cancels a trial that still has its sandbox. One that is being saved is recorded, or the store refuses it."""
        task = self._tasks.get(trial_id)
        if task is not None and trial_id in self._sandboxed and trial_id not in self._reasons:
            self._reasons[trial_id] = why
            task.cancel()

    async def renew(self) -> None:
        """Extends the leases of all held trials, also an expired one if no other worker claimed the trial."""
        if not self._held:
            return
        held, holder = dict(self._held), self._holder
        report: RenewalReport
        try:
            async with asyncio.timeout(holder.renewal_sec):
                report = await self._store.trials.renew(holder.worker, held, holder.lease, self._clock())
        except TimeoutError as late:
            raise StoreUnavailable(f"The store did not answer within {holder.renewal_sec:g} s.") from late
        for trial_id in report.lost:
            if self._held.get(trial_id) == held[trial_id]:  # otherwise it ended meanwhile and may be claimed again
                self._stop(trial_id, Stop.LOST)
        for trial_id in report.cancel:
            self._stop(trial_id, Stop.CANCELLED)

    async def stop_cancelled(self) -> None:
        """Stops cancelled trials. Users wait for this, and the next renewal may be seconds away."""
        if self._sandboxed:
            for trial_id in await self._store.trials.asked_to_stop(self._holder.worker):
                self._stop(trial_id, Stop.CANCELLED)
