"""One asyncio loop that holds hundreds of trials: claim → execute → finish; heartbeat; recovery; drain on request.

Started by ``seatrial run`` for its own job alone, and by ``seatrial worker`` for whatever is queued.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from seatrial.domain.trial import Trial
from seatrial.engine.clock import Clock
from seatrial.engine.execute import Executor, Stop
from seatrial.engine.phases import PhaseLog
from seatrial.engine.recover import Recovery
from seatrial.errors import StoreUnavailable
from seatrial.ports.queue import Queue
from seatrial.ports.store import Heartbeat, Store

log = logging.getLogger(__name__)

_IDLE_SEC = 1.0
"""How long an idle worker waits before it looks at the store without having been told."""


class Worker:
    """Claims trials up to its capacity and sees each to its end."""

    def __init__(
        self,
        store: Store,
        queue: Queue,
        executor: Executor,
        phases: PhaseLog,
        recovery: Recovery,
        clock: Clock,
        about: Heartbeat,
        lease: timedelta,
        heartbeat_sec: float,
        reap_sec: float,
        clean_leftovers: Callable[[], Awaitable[int]] | None = None,
        may_claim: Callable[[], bool] = lambda: True,
        job_id: int | None = None,
    ) -> None:
        self._store = store
        self._queue = queue
        self._executor = executor
        self._phases = phases
        self._recovery = recovery
        self._clock = clock
        self._about = about
        self._lease = lease
        self._heartbeat_sec = heartbeat_sec
        self._reap_sec = reap_sec
        self._clean_leftovers = clean_leftovers
        self._may_claim = may_claim
        self._job_id = job_id
        self._running: dict[int, asyncio.Task[None]] = {}
        self._held: dict[int, int] = {}
        self._reasons: dict[int, Stop] = {}
        self._slot_free = asyncio.Event()
        self._leaving = asyncio.Event()

    @property
    def in_flight(self) -> int:
        return len(self._running)

    @property
    def leaving(self) -> bool:
        return self._leaving.is_set()

    def leave(self) -> None:
        """Claims nothing more; ``run`` returns when what is in flight has ended."""
        self._leaving.set()
        self._slot_free.set()

    async def run(self) -> None:
        """Until ``leave``. When it is cancelled, trials in flight are stopped and given back to the queue."""
        async with self._phases, asyncio.TaskGroup() as duties:
            beating = duties.create_task(self._beat_forever(), name="heartbeat")
            reaping = duties.create_task(self._reap_forever(), name="reaper")
            try:
                await self._claim_until_leaving()
                await self._drain()
            except asyncio.CancelledError:
                await asyncio.shield(self._abandon())
                raise
            finally:
                beating.cancel()
                reaping.cancel()
        with contextlib.suppress(StoreUnavailable):
            await self._store.forget_worker(self._about.worker)

    async def _claim_until_leaving(self) -> None:
        while not self._leaving.is_set():
            claimed = await self._claim()
            for trial in claimed:
                self._start(trial)
            if not claimed:
                await self._wait_for_work()

    async def _claim(self) -> list[Trial]:
        free = self._about.capacity - len(self._running)
        if free <= 0 or not self._may_claim():
            return []
        try:
            return await self._store.claim(self._about.worker, self._lease, free, self._clock(), self._job_id)
        except StoreUnavailable as fault:
            log.warning("The store did not answer; trying again: %s", fault)
            await asyncio.sleep(_IDLE_SEC)
            return []

    async def _wait_for_work(self) -> None:
        """Until a slot is free (when full), work is announced, or a moment has passed."""
        self._slot_free.clear()
        waits: set[asyncio.Task[Any]] = {asyncio.create_task(self._slot_free.wait())}
        if len(self._running) < self._about.capacity:
            waits.add(asyncio.create_task(self._queue.wait(_IDLE_SEC)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _start(self, trial: Trial) -> None:
        self._held[trial.id] = trial.attempt
        task = asyncio.create_task(self._see_through(trial), name=f"trial-{trial.id}.{trial.attempt}")
        self._running[trial.id] = task
        task.add_done_callback(lambda _: self._ended(trial))

    async def _see_through(self, trial: Trial) -> None:
        try:
            await self._executor.execute(trial, lambda: self._reasons.get(trial.id))
        except Exception:
            # A fault of ours, outside every boundary. The lease runs out and the trial is recovered from there.
            log.exception("Trial %s, attempt %s: unexpected fault", trial.id, trial.attempt)

    def _ended(self, trial: Trial) -> None:
        self._running.pop(trial.id, None)
        self._held.pop(trial.id, None)
        self._reasons.pop(trial.id, None)
        self._slot_free.set()

    async def _drain(self) -> None:
        while self._running:
            await asyncio.wait(list(self._running.values()))

    async def _abandon(self) -> None:
        for trial_id in list(self._running):
            self._stop(trial_id, Stop.LEAVING)
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _stop(self, trial_id: int, why: Stop) -> None:
        task = self._running.get(trial_id)
        if task is not None and trial_id not in self._reasons:
            self._reasons[trial_id] = why
            task.cancel()

    async def _beat_forever(self) -> None:
        while True:
            try:
                await self._beat()
            except StoreUnavailable as fault:
                log.warning("Heartbeat did not reach the store: %s", fault)
            await asyncio.sleep(self._heartbeat_sec)

    async def _beat(self) -> None:
        now = self._clock()
        about = self._about.model_copy(update={"draining": self._leaving.is_set()})
        await self._store.beat(about, now)
        if not self._held:
            return
        report = await self._store.renew(self._about.worker, dict(self._held), self._lease, now)
        for trial_id in report.lost:
            self._stop(trial_id, Stop.LOST)
        for trial_id in report.cancel:
            self._stop(trial_id, Stop.CANCELLED)

    async def _reap_forever(self) -> None:
        while True:
            try:
                await self._recovery.sweep()
                if self._clean_leftovers is not None:
                    await self._clean_leftovers()
            except StoreUnavailable as fault:
                log.warning("Recovery could not reach the store: %s", fault)
            await asyncio.sleep(self._reap_sec)
