"""One asyncio loop that holds hundreds of trials: claim → execute → finish; background duties; drain on request.

No fault of a background duty reaches a trial: ``engine/duties`` runs them.

Started by ``seatrial run`` for its own job alone, and by ``seatrial worker`` for whatever is queued.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from seatrial.domain.trial import Trial
from seatrial.engine.clock import Clock
from seatrial.engine.duties import Duties
from seatrial.engine.trials.execute import Executor, Stop
from seatrial.engine.trials.phases import PhaseLog
from seatrial.engine.trials.recover import Recovery
from seatrial.errors import StoreUnavailable
from seatrial.logs import noting
from seatrial.ports.queue import Queue
from seatrial.ports.store import Heartbeat, RenewalReport, Store

log = logging.getLogger(__name__)

_IDLE_SEC = 1.0
"""How long an idle worker waits before it looks at the store without having been told."""
_LISTEN_SEC = 0.5
"""How often a worker asks whether one of its trials was cancelled."""
_SAVING_PATIENCE_SEC = 10.0
"""How long a worker that is stopped waits for results that are being recorded."""
_RENEWAL_SEC = 5.0
"""A renewal that has not come through by then is given up and tried again, unless the lease is long."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a worker does what, and how long it may stay silent."""

    lease: timedelta
    heartbeat_sec: float
    reap_sec: float

    @property
    def renewal_sec(self) -> float:
        """How long one renewal may take. A store that hangs must not use up the whole lease with one question."""
        return max(_RENEWAL_SEC, self.lease.total_seconds() / 3)


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
        pace: Pace,
        duties: Duties,
        extra: Sequence[tuple[str, Callable[[], Awaitable[object]], float]] = (),
        obstacle: Callable[[], str] = lambda: "",
        job_id: int | None = None,
    ) -> None:
        """``extra`` are further duties: name, step, and seconds between two steps."""
        self._store = store
        self._queue = queue
        self._executor = executor
        self._phases = phases
        self._recovery = recovery
        self._clock = clock
        self._about = about
        self._pace = pace
        self._duties = duties
        self._extra = extra
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
        async with self._phases, self._executor.live, asyncio.TaskGroup() as group:
            tasks = [group.create_task(duty, name=name) for name, duty in self._background()]
            try:
                await self._claim_until_leaving()
                await self._drain()
            except asyncio.CancelledError:
                await asyncio.shield(self._abandon())
                raise
            finally:
                for task in tasks:
                    task.cancel()
        await self._duties.attempt("heartbeat", lambda: self._store.forget_worker(self._about.worker))

    def _background(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """The duties beside the trials, each forever. Leases come first: after an outage they are what is urgent."""
        repeat, pace = self._duties.repeat, self._pace
        duties = [
            ("leases", repeat("leases", self._renew, pace.heartbeat_sec)),
            ("heartbeat", repeat("heartbeat", self._beat, pace.heartbeat_sec)),
            ("cancellations", repeat("cancellations", self._listen, _LISTEN_SEC, patient=True, later=True)),
            ("recovery", repeat("recovery", self._recovery.sweep, pace.reap_sec)),
        ]
        return duties + [(name, repeat(name, step, every, patient=True)) for name, step, every in self._extra]

    async def _claim_until_leaving(self) -> None:
        while not self._leaving.is_set():
            claimed = await self._duties.attempt("claims", self._claim)
            for trial in claimed or ():
                self._start(trial)
            if claimed is None:
                await self._moment()
            elif not claimed:
                await self._wait_for_work()

    async def _claim(self) -> list[Trial]:
        if self._free <= 0 or self._is_paused():
            return []
        pace, about = self._pace, self._about
        return await self._store.claim(
            about.worker, pace.lease, self._free, self._clock(), self._job_id, seal=about.seal or None
        )

    async def _moment(self) -> None:
        """A pause after a fault, cut short when the worker is told to leave."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_IDLE_SEC):
                await self._leaving.wait()

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
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if await self._duties.attempt("wake-ups", lambda: _ended_well(done)) is None:
            await self._moment()

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

    async def _renew(self) -> None:
        """Extends the leases of what is held. Also one that ran out meanwhile, if nobody took the trial."""
        if not self._held:
            return
        held, pace = dict(self._held), self._pace
        report: RenewalReport
        try:
            async with asyncio.timeout(pace.renewal_sec):
                report = await self._store.renew(self._about.worker, held, pace.lease, self._clock())
        except TimeoutError as late:
            raise StoreUnavailable(f"The store did not answer within {pace.renewal_sec:g} s.") from late
        for trial_id in report.lost:
            if self._held.get(trial_id) == held[trial_id]:  # else it ended meanwhile, and may have been claimed anew
                self._stop(trial_id, Stop.LOST)
        for trial_id in report.cancel:
            self._stop(trial_id, Stop.CANCELLED)

    async def _beat(self) -> None:
        told = {"draining": self._leaving.is_set(), "paused": self._paused, "troubles": self._duties.troubles}
        await self._store.beat(self._about.model_copy(update=told), self._clock())

    async def _listen(self) -> None:
        """Somebody who cancels waits for the sandbox to be gone; the next renewal may be long in coming."""
        if self._sandboxed:
            for trial_id in await self._store.asked_to_stop(self._about.worker):
                self._stop(trial_id, Stop.CANCELLED)


async def _ended_well(waits: Iterable[asyncio.Task[Any]]) -> bool:
    """Raises what ended one of them."""
    for wait in waits:
        wait.result()
    return True


async def beat_forever(store: Store, about: Heartbeat, clock: Clock, every_sec: float) -> None:
    """For a process that holds no trial yet: tells the store that it is there."""
    await Duties(clock).repeat("heartbeat", lambda: store.beat(about, clock()), every_sec)
