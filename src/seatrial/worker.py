"""A worker claims trials and runs hundreds of them in one asyncio loop, until it is told to leave.

``engine/duties`` runs the background duties, so that an error in one of them cannot stop a trial. ``seatrial run``
starts a worker for its own job only; ``seatrial worker`` starts one for all queued trials.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from seatrial.domain.fleet.isolation import Suspects
from seatrial.domain.trial import Trial
from seatrial.engine.clock import Clock
from seatrial.engine.duties import Duties, Duty
from seatrial.engine.fleet.tenure import Tenure
from seatrial.engine.trials.execute import Executor
from seatrial.engine.trials.recover import Recovery
from seatrial.engine.trials.running import Holder, RunningTrials
from seatrial.engine.trials.trial_slots import TrialSlots
from seatrial.errors import StaleTry
from seatrial.ports.store import Heartbeat, Store
from seatrial.ports.wake_up import WakeUp
from seatrial.worker_exits import memory_kills

log = logging.getLogger(__name__)

_IDLE_SEC = 1.0
"""An idle worker asks the store for trials this often, even without a wake-up."""
_SEARCH_SEC = 1.0
"""A worker asks this often whether suspected trials wait for a process."""
_LISTEN_SEC = 0.5
"""A worker asks this often whether one of its trials was cancelled."""
_TEND_SEC = 2.0
"""A worker checks this often whether wake-ups reach it."""
_EXAMINE_SEC = 30.0
"""Sandboxes that could not be tried are tried again after this time."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The length of a lease, and the intervals of heartbeats and recovery."""

    lease: timedelta
    heartbeat_sec: float
    reap_sec: float
    drain_sec: float | None = None
    """The time that running trials have after a signal or a notice; ``None`` means until they end."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What a worker does in the background."""

    duties: Duties
    recovery: Recovery
    extra: Sequence[Duty] = ()
    at_end: Mapping[str, Callable[[], Awaitable[object]]] = field(default_factory=dict)
    """Functions that give back what it shares with other workers, by name. They run once, after its last trial."""


@dataclass(frozen=True, slots=True)
class Claiming:
    """Which trials a worker claims, and when it claims none."""

    job_id: int | None = None
    """Only trials of this job; ``None`` means all."""
    group: str | None = None
    """Only these suspected trials. The worker leaves when there are no more."""
    obstacle: Callable[[], str] = lambda: ""
    """Says why the worker must not claim trials now; an empty string means that it may."""
    slots: TrialSlots | None = None
    """How many trials fit, and which the worker can run. By default its capacity counts."""
    suspects: SuspectRuns | None = None
    """Runs suspected trials apart from others. ``None``: the worker runs them itself."""
    tenure: Tenure | None = None
    """Protects the machine before the worker claims. ``None``: no platform ends this machine."""


class SuspectRuns(Protocol):
    """Runs groups of suspected trials in other processes; see ``suspect_process``."""

    @property
    def slots(self) -> int:
        """How many slots of the worker it takes."""

    sandboxes: Sequence[str]
    """Those that work on this machine."""

    async def look(self, groups: Sequence[Suspects], free: int) -> None: ...

    def leave(self) -> None: ...

    async def gone(self) -> None: ...


class Worker:
    """Claims trials up to its capacity and runs each to its end, until it is told to leave."""

    def __init__(
        self,
        store: Store,
        wake_up: WakeUp,
        clock: Clock,
        executor: Executor,
        about: Heartbeat,
        pace: Pace,
        upkeep: Upkeep,
        claiming: Claiming,
    ) -> None:
        self._store = store
        self._wake_up = wake_up
        self._clock = clock
        self._executor = executor
        self._about = about
        self._pace = pace
        self._upkeep = upkeep
        self._duties = upkeep.duties
        self._claiming = claiming
        self._suspects = claiming.suspects
        self._group = claiming.group
        self._tenure = claiming.tenure
        self._slots = claiming.slots or TrialSlots(about.capacity)
        self._paused = ""
        self._slot_free = asyncio.Event()
        self._running = RunningTrials(
            store,
            clock,
            Holder(about.worker, pace.lease),
            executor,
            wake_up,
            self._slots,
            self._duties,
            self._slot_free.set,
        )
        self._unfit: list[Trial] = []
        """Claimed trials whose agent is not installed here, until they are given back."""
        self._leaving = asyncio.Event()
        self._drained_by = float("inf")
        self.left_idle = False
        """Whether it leaves because it is idle."""
        self.was_noticed = False
        """Whether it leaves because the platform ends its machine."""

    @property
    def _free(self) -> int:
        """How many more trials may start."""
        return self._running.unused_slots - (self._suspects.slots if self._suspects is not None else 0)

    @property
    def _holds(self) -> int:
        """Trials of this worker, also those in its second process."""
        return len(self._running) + (self._suspects.slots if self._suspects is not None else 0)

    @property
    def leaving(self) -> bool:
        return self._leaving.is_set()

    def can_use(self, sandboxes: Sequence[str]) -> None:
        """Sets the sandboxes that work on this machine. The next heartbeat tells the store."""
        self._about = self._about.model_copy(update={"sandboxes": tuple(sandboxes)})
        self.can_use_only(sandboxes)

    async def find_sandboxes(
        self, working: Callable[[], Awaitable[Sequence[str]]], every_sec: float = _EXAMINE_SEC
    ) -> None:
        """Asks which sandboxes work on this machine, until there is an answer."""
        while True:
            found = await self._duties.once("sandbox checks", working)
            if found is not None:
                return self.can_use(found)
            await asyncio.sleep(every_sec)

    def can_use_only(self, sandboxes: Sequence[str]) -> None:
        """The worker claims only trials for these sandboxes, from now on."""
        self._slots.abilities = self._slots.abilities.model_copy(update={"sandboxes": tuple(sandboxes)})
        if self._suspects is not None:
            self._suspects.sandboxes = tuple(sandboxes)
        self._slot_free.set()

    def drain(self) -> None:
        """Leaves within the operator's limit."""
        self.leave(self._pace.drain_sec)

    def leave(self, within_sec: float | None = None) -> None:
        """Stops claiming. ``run`` returns when the running trials have ended, or were given back after ``within_sec``.

        A later call may shorten the time, and never extends it."""
        if within_sec is not None:
            self._drained_by = min(self._drained_by, asyncio.get_running_loop().time() + within_sec)
        is_first = not self._leaving.is_set()
        self._leaving.set()
        self._slot_free.set()
        if self._suspects is not None and is_first:  # a second time would make them give their trials back
            self._suspects.leave()

    async def run(self) -> None:
        """Runs until ``leave``. A cancellation stops the running trials and gives them back to the queue."""
        async with self._executor.reports.running(), asyncio.TaskGroup() as group:
            tasks = [group.create_task(duty, name=name) for name, duty in self._background()]
            try:
                await self._claim_until_leaving()
                await self._drain()
            except asyncio.CancelledError:
                await asyncio.shield(self._abandon())
                await asyncio.shield(self._give_back_shares())
                raise
            finally:
                for task in tasks:
                    task.cancel()
        await self._give_back_shares()
        self._duties.now("trial slots", self._slots.close)
        await self._duties.once("heartbeat", lambda: self._store.workers.forget(self._about.worker))
        if self._tenure is not None:
            await self._duties.once("protection", self._tenure.release)

    async def _give_back_shares(self) -> None:
        """So that other workers need not wait until its leases end."""
        for name, step in self._upkeep.at_end.items():
            await self._duties.once(name, step)

    def _background(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """The background duties. Leases come first, because they are most urgent after an outage of the store."""
        forever, pace, running = self._duties.forever, self._pace, self._running
        duties = [
            ("leases", forever("leases", running.renew, pace.heartbeat_sec)),
            ("heartbeat", forever("heartbeat", self._beat, pace.heartbeat_sec)),
            ("cancellations", forever("cancellations", running.stop_cancelled, _LISTEN_SEC, patient=True, later=True)),
            ("recovery", forever("recovery", self._upkeep.recovery.sweep, pace.reap_sec)),
            ("queue", forever("queue", lambda: self._wake_up.tend(self._told), _TEND_SEC)),
        ]
        if self._suspects is not None:
            duties.append(("suspects", forever("suspects", self._look_for_suspects, _SEARCH_SEC, patient=True)))
        if self._tenure is not None:
            duties.append(("protection", forever("protection", self._tenure.renew, self._tenure.protection_sec)))
        if self._tenure is not None and (every_sec := self._tenure.notice_sec) is not None:
            duties.append(("notices", forever("notices", self._look_out, every_sec)))
        extra = self._upkeep.extra
        return duties + [
            (duty.name, forever(duty.name, duty.step, duty.every_sec, patient=duty.patient)) for duty in extra
        ]

    async def _claim_until_leaving(self) -> None:
        while not self._leaving.is_set():
            self._slot_free.clear()  # before the claim: a slot that gets free during it would be missed
            claimed = await self._duties.once("claims", self._claim)
            for trial in claimed or ():
                self._start(trial)
            if self._unfit:
                await self._duties.once("trials to give back", self._give_back_unfit)
            if claimed is None:
                await self._moment()
            elif not claimed and not await self._left_idle():
                await self._wait_for_work()

    async def _claim(self) -> list[Trial]:
        if self._free <= 0 or self._is_paused():
            return []
        if self._tenure is not None and not await self._tenure.may_claim(self._holds):
            if self._claiming.group is not None and not self._running:
                self.leave()
            return []
        if not self._running:
            self._group = self._claiming.group  # the suspects that were claimed last are done
        claimed = await self._claim_of(self._group)
        if claimed or self._running:
            return claimed
        if self._claiming.group is not None:
            self.leave()
        elif self._suspects is None:
            return await self._claim_suspects()
        return claimed

    async def _claim_of(self, group: str | None) -> list[Trial]:
        async with self._slots.offering() as offer:
            if offer is None:
                return []
            worker, lease, seal = self._about.worker, self._pace.lease, self._about.seal or None
            now, job = self._clock(), self._claiming.job_id
            claimed = await self._store.trials.claim(
                worker, lease, self._free, now, job, seal=seal, group=group, offer=offer
            )
            for trial in claimed:
                self._slots.enter(trial)
        return [trial for trial in claimed if self._can_run(trial)]

    def _can_run(self, trial: Trial) -> bool:
        if self._slots.knows_agent_of(trial):
            return True
        self._slots.leave(trial.id)
        self._unfit.append(trial)
        return False

    async def _give_back_unfit(self) -> None:
        """Gives back trials whose agent is not installed here. The store then offers no more of them.

        One that cannot be given back is tried again after the next claim. Its lease is not renewed."""
        while self._unfit:
            trial = self._unfit[0]
            with contextlib.suppress(StaleTry):
                await self._store.trials.give_back(trial.id, trial.try_number, self._clock())
            self._unfit.pop(0)

    async def _claim_suspects(self) -> list[Trial]:
        """An idle worker without other processes runs a group by itself, and nothing beside it."""
        for found in await self._groups():
            if claimed := await self._claim_of(found.group):
                self._group = found.group
                return claimed
        return []

    async def _groups(self) -> list[Suspects]:
        return await self._store.trials.suspects(self._clock(), self._claiming.job_id, self._about.seal or None)

    async def _look_for_suspects(self) -> None:
        """Gives a group of suspected trials a process of its own, if there is one."""
        if self._suspects is not None and not self._leaving.is_set() and not self._paused:
            await self._suspects.look(await self._groups(), self._running.unused_slots)
            self._slot_free.set()

    async def _left_idle(self) -> bool:
        """Whether the worker may leave because it is idle; it then claims nothing more."""
        tenure = self._tenure
        if tenure is None or not await self._duties.once("idle check", lambda: tenure.should_leave(self._holds)):
            return False
        self.left_idle = True
        self.leave()
        return True

    async def _look_out(self) -> None:
        """Drains if the platform is about to end this machine."""
        notice = await self._tenure.notice() if self._tenure is not None else None
        if notice is not None:
            if not self.leaving:
                log.warning("The worker drains: %s", notice.reason)
            self.was_noticed = True
            self.leave(self._shortest(notice.within_sec))

    def _shortest(self, within_sec: float | None) -> float | None:
        """The time of a notice, or the operator's limit if that is shorter."""
        limits = [limit for limit in (within_sec, self._pace.drain_sec) if limit is not None]
        return min(limits, default=None)

    async def _moment(self) -> None:
        """Pauses after an error, or until the worker is told to leave."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_IDLE_SEC):
                await self._leaving.wait()

    def _is_paused(self) -> bool:
        before, self._paused = self._paused, self._claiming.obstacle()
        if self._paused and not before:
            log.warning("The worker claims no trials: %s", self._paused)
        if before and not self._paused:
            log.info("The worker claims trials again.")
        return bool(self._paused)

    async def _wait_for_work(self) -> None:
        """Waits until a slot gets free (or did during the claim), a wake-up comes, or the idle interval has passed."""
        waits: set[asyncio.Task[Any]] = {asyncio.create_task(self._slot_free.wait())}
        if self._free > 0:
            waits.add(asyncio.create_task(self._wake_up.wait(_IDLE_SEC)))
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if await self._duties.once("wake-ups", lambda: _ended_well(done)) is None:
            await self._moment()

    def _start(self, trial: Trial) -> None:
        if self._tenure is not None:
            self._tenure.works()
        self._running.start(trial)

    async def _drain(self) -> None:
        """Waits for the running trials. Gives back those that have not ended in time."""
        loop, ending = asyncio.get_running_loop(), asyncio.create_task(self._all_ended())
        try:
            while not ending.done():
                left = self._drained_by - loop.time()
                if left <= 0:
                    log.warning("No time is left: %d trials go back to the queue.", self._running.sandboxes)
                    await self._abandon()
                    return
                # Looks again, because a notice may shorten the time.
                await asyncio.wait({ending}, timeout=min(left, _IDLE_SEC))
        finally:
            ending.cancel()

    async def _all_ended(self) -> None:
        await self._running.all_ended()
        if self._suspects is not None:
            await self._suspects.gone()

    async def _abandon(self) -> None:
        if self._suspects is not None:
            self._suspects.leave()
        await self._running.abandon()
        if self._suspects is not None:
            await self._suspects.gone()

    @property
    def _told(self) -> Heartbeat:
        told = {
            "draining": self._leaving.is_set(),
            "paused": self._paused,
            "troubles": self._duties.troubles,
            "memory_kills": memory_kills()[1],
            "abilities": self._slots.abilities,
            "packing": self._slots.packing,
        }
        return self._about.model_copy(update=told)

    async def _beat(self) -> None:
        await self._store.workers.beat(self._told, self._clock())


async def _ended_well(waits: Iterable[asyncio.Task[Any]]) -> bool:
    """Raises the first exception of the tasks."""
    for wait in waits:
        wait.result()
    return True


async def beat_forever(store: Store, about: Heartbeat, clock: Clock, every_sec: float) -> None:
    """Sends heartbeats for a process that has no worker yet."""
    await Duties(clock).forever("heartbeat", lambda: store.workers.beat(about, clock()), every_sec)
