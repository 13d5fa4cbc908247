"""One asyncio loop that holds hundreds of trials: claim → execute → finish; heartbeat; recovery; drain on request.

Started by ``seatrial run`` for its own job alone, and by ``seatrial worker`` for whatever is queued.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

from seatrial.domain.trial import Trial
from seatrial.engine.clock import Clock
from seatrial.engine.trials.execute import Executor, Stop
from seatrial.engine.trials.phases import PhaseLog
from seatrial.engine.trials.recover import Recovery
from seatrial.errors import StoreUnavailable
from seatrial.logs import noting
from seatrial.ports.queue import Queue
from seatrial.ports.store import Heartbeat, Store

log = logging.getLogger(__name__)

_IDLE_SEC = 1.0
"""How long an idle worker waits before it looks at the store without having been told."""
_LISTEN_SEC = 0.5
"""How often a worker asks whether one of its trials was cancelled."""
_SAVING_PATIENCE_SEC = 10.0
"""How long a worker that is stopped waits for results that are being recorded."""


class Worker:
    """Claims trials up to its capacity and sees each to its end.

    A trial takes a slot while its sandbox is there; its files and its result are saved beside the next trial. With
    those being saved it holds at most twice its capacity, so that a slow store holds the worker back.
    """

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
        obstacle: Callable[[], str] = lambda: "",
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
        self._obstacle = obstacle
        """Says why nothing may be claimed at the moment, or nothing."""
        self._paused = ""
        self._job_id = job_id
        self._running: dict[int, asyncio.Task[None]] = {}
        self._held: dict[int, int] = {}
        self._sandboxed: set[int] = set()
        self._reasons: dict[int, Stop] = {}
        self._slot_free = asyncio.Event()
        self._leaving = asyncio.Event()

    @property
    def _free(self) -> int:
        """How many more trials may start."""
        capacity = self._about.capacity
        return min(capacity - len(self._sandboxed), 2 * capacity - len(self._running))

    @property
    def leaving(self) -> bool:
        return self._leaving.is_set()

    def can_use(self, sandboxes: Sequence[str]) -> None:
        """What is found to work here while trials run already; told with the next heartbeat."""
        self._about = self._about.model_copy(update={"sandboxes": tuple(sandboxes)})

    def leave(self) -> None:
        """Claims nothing more; ``run`` returns when what is in flight has ended."""
        self._leaving.set()
        self._slot_free.set()

    async def run(self) -> None:
        """Until ``leave``. When it is cancelled, trials in flight are stopped and given back to the queue."""
        async with self._phases, self._executor.live, asyncio.TaskGroup() as duties:
            beating = duties.create_task(self._beat_forever(), name="heartbeat")
            listening = duties.create_task(self._listen_forever(), name="cancellations")
            reaping = duties.create_task(self._reap_forever(), name="reaper")
            try:
                await self._claim_until_leaving()
                await self._drain()
            except asyncio.CancelledError:
                await asyncio.shield(self._abandon())
                raise
            finally:
                beating.cancel()
                listening.cancel()
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
        if self._free <= 0 or self._is_paused():
            return []
        try:
            return await self._store.claim(self._about.worker, self._lease, self._free, self._clock(), self._job_id)
        except StoreUnavailable as fault:
            log.warning("The store did not answer; trying again: %s", fault)
            await asyncio.sleep(_IDLE_SEC)
            return []

    def _is_paused(self) -> bool:
        before, self._paused = self._paused, self._obstacle()
        if self._paused and not before:
            log.warning("Claiming nothing: %s", self._paused)
        if before and not self._paused:
            log.info("Claiming again.")
        return bool(self._paused)

    async def _wait_for_work(self) -> None:
        """Until a slot is free (when full), work is announced, or a moment has passed."""
        self._slot_free.clear()
        waits: set[asyncio.Task[Any]] = {asyncio.create_task(self._slot_free.wait())}
        if self._free > 0:
            waits.add(asyncio.create_task(self._queue.wait(_IDLE_SEC)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _start(self, trial: Trial) -> None:
        self._held[trial.id] = trial.attempt
        self._sandboxed.add(trial.id)
        task = asyncio.create_task(self._see_through(trial), name=f"trial-{trial.id}.{trial.attempt}")
        self._running[trial.id] = task
        task.add_done_callback(lambda _: self._ended(trial))

    async def _see_through(self, trial: Trial) -> None:
        with noting(job_id=trial.job_id, trial_id=trial.id, attempt=trial.attempt):
            try:
                await self._executor.execute(
                    trial, lambda: self._reasons.get(trial.id), lambda: self._sandbox_gone(trial.id)
                )
            except Exception:
                # A fault of ours, outside every boundary. The lease runs out and the trial is recovered from there.
                log.exception("Unexpected fault in a trial")

    def _sandbox_gone(self, trial_id: int) -> None:
        self._sandboxed.discard(trial_id)
        self._slot_free.set()

    def _ended(self, trial: Trial) -> None:
        self._sandboxed.discard(trial.id)
        self._running.pop(trial.id, None)
        self._held.pop(trial.id, None)
        self._reasons.pop(trial.id, None)
        self._slot_free.set()

    async def _drain(self) -> None:
        while self._running:
            await asyncio.wait(list(self._running.values()))

    async def _abandon(self) -> None:
        saving = [task for trial_id, task in self._running.items() if trial_id not in self._sandboxed]
        for trial_id in list(self._sandboxed):
            self._stop(trial_id, Stop.LEAVING)
        if saving:
            _, late = await asyncio.wait(saving, timeout=_SAVING_PATIENCE_SEC)
            for task in late:
                task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _stop(self, trial_id: int, why: Stop) -> None:
        """A trial that is being saved is past stopping: its result is recorded, or refused by the store."""
        task = self._running.get(trial_id)
        if task is not None and trial_id in self._sandboxed and trial_id not in self._reasons:
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
        about = self._about.model_copy(update={"draining": self._leaving.is_set(), "paused": self._paused})
        await self._store.beat(about, now)
        if not self._held:
            return
        report = await self._store.renew(self._about.worker, dict(self._held), self._lease, now)
        for trial_id in report.lost:
            self._stop(trial_id, Stop.LOST)
        for trial_id in report.cancel:
            self._stop(trial_id, Stop.CANCELLED)

    async def _listen_forever(self) -> None:
        """Somebody who cancels waits for the sandbox to be gone; the next heartbeat may be long in coming."""
        while True:
            await asyncio.sleep(_LISTEN_SEC)
            if not self._sandboxed:
                continue
            with contextlib.suppress(StoreUnavailable):  # the heartbeat says so
                for trial_id in await self._store.asked_to_stop(self._about.worker):
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


async def beat_forever(store: Store, about: Heartbeat, clock: Clock, every_sec: float) -> None:
    """For a process that holds no trial yet: tells the store that it is there."""
    while True:
        try:
            await store.beat(about, clock())
        except StoreUnavailable as fault:
            log.warning("Heartbeat did not reach the store: %s", fault)
        await asyncio.sleep(every_sec)
