"""What runs beside trials: recovery, cleaning, settling, the clock, and the signals of a fleet."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

from seatrial.domain.fleet.work_units import MachineSize
from seatrial.domain.result import Usage
from seatrial.domain.trial import Outcome, Trial, TrialState
from seatrial.engine import provider_pace
from seatrial.engine.budgets import slices
from seatrial.engine.budgets.ledger import Ledgers
from seatrial.engine.budgets.slices import Budgets
from seatrial.engine.clock import StoreClock
from seatrial.engine.duties import Duties, Duty
from seatrial.engine.fleet.publish import Publisher
from seatrial.engine.fleet.signals import FleetSignals, MachineUnit
from seatrial.engine.jobs import settle
from seatrial.engine.provider_pace import ProviderPace
from seatrial.engine.trials.autopsy import Autopsy, Witnesses
from seatrial.engine.trials.final_states import FinalStates
from seatrial.engine.trials.recover import LeaseTrust, Recovery
from seatrial.engine.trials.retention import remove_dead_work_dirs, remove_lost_tries
from seatrial.errors import NotFound
from seatrial.gateway.counts import CallCounts
from seatrial.gateway.journal import read_calls
from seatrial.ports.store import TrialFilter, WorkerRow
from seatrial.settings import Settings
from seatrial.sizing import overcommit_of
from seatrial.system.processes import WorkerName, is_dead
from seatrial.wiring.installation import Installation, store_time
from seatrial.worker import Upkeep
from seatrial.worker_exits import ExitNotes, memory_kills

_LOOKS = 8
_UNHEARD = timedelta(days=1)
"""A worker whose last heartbeat is older than this is gone."""


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """What a worker keeps up for its runner's calls to models."""

    pace: ProviderPace | None
    """``None`` if the installation keeps no pace."""
    budgets: Budgets
    close: Callable[[], Awaitable[object]]
    """Closes what the runner opened for them."""


def upkeep_of(
    installation: Installation, clean: Callable[[], Awaitable[int]] | None, calls: ModelCalls | None = None
) -> Upkeep:
    """``clean`` removes leftovers of sandboxes."""
    recovery = _recovery(installation)
    settler = settle.Settler(installation.store, installation.wake_up, installation.clock)
    extra = [*_clock_duty(installation), Duty("settling", settler.sweep, settle.EVERY_SEC)]
    if clean is not None:
        extra.append(Duty("leftovers", clean, installation.settings.reap_sec))
    if calls is not None and calls.pace is not None:
        extra.append(Duty("provider pace", calls.pace.sync, provider_pace.EVERY_SEC))
    if calls is not None:  # after an outage it must report within a lease
        extra.append(Duty("budgets", calls.budgets.sync, slices.EVERY_SEC, patient=False))
    at_end = _at_end(installation, calls)
    return Upkeep(Duties(installation.clock, noticed=recovery.noticed), recovery, extra, at_end)


def _at_end(installation: Installation, calls: ModelCalls | None) -> dict[str, Callable[[], Awaitable[object]]]:
    worker = str(WorkerName.mine())
    at_end: dict[str, Callable[[], Awaitable[object]]] = {} if calls is None else {"gate": calls.close}
    at_end["provider pace"] = lambda: installation.store.pace.leave(worker)
    return at_end if calls is None else {**at_end, "budgets": calls.budgets.leave}


@asynccontextmanager
async def recover_in_background(installation: Installation) -> AsyncIterator[Duties]:
    """Recovers trials of lost workers while a service runs, because there may be no worker that could do it."""
    upkeep = upkeep_of(installation, clean=None)
    duties = upkeep.duties
    recovery = Duty("recovery", upkeep.recovery.sweep, installation.settings.reap_sec)
    queue = Duty("queue", installation.wake_up.tend, installation.settings.heartbeat_sec)
    steps = [recovery, queue, *upkeep.extra, *_publishing(installation)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(duties.forever(duty.name, duty.step, duty.every_sec)) for duty in steps]
        try:
            yield duties
        finally:
            for task in tasks:
                task.cancel()


async def recover_lost(installation: Installation, waiting: Callable[[int, float], None]) -> int:
    """Queues or ends the trials of lost workers and returns how many.

    A trial with an expired lease may still have a worker that could not reach the store. If there are such trials,
    ``waiting`` is called with their number and the seconds of grace, and they are looked at again after that."""
    recovery = _recovery(installation)
    found = await recovery.sweep()
    late = await recovery.late()
    if late:
        waiting(len(late), recovery.trust.grace_sec)
        for _ in range(_LOOKS):  # several looks, so that an outage of the store is noticed
            await asyncio.sleep(recovery.trust.grace_sec / _LOOKS)
            found += await recovery.sweep()
        await asyncio.sleep(0.1)
        found += await recovery.sweep()
    return found


def _recovery(installation: Installation) -> Recovery:
    settings = installation.settings
    trust = LeaseTrust(settings.lease_sec, settings.heartbeat_sec, settings.reap_sec)
    store, clock = installation.store, installation.clock
    witnesses = Witnesses(exit_of=ExitNotes.beside(settings.work_dir).read, memory_kills=memory_kills)
    autopsy = Autopsy(store.workers, clock, witnesses)

    async def used_by(trial: Trial) -> Usage:
        """A worker on another machine left its files there, where this process cannot read them."""
        worker = WorkerName.parse(trial.worker or "")
        if worker is None:
            return Usage()
        folder = settings.work_dir / worker.folder / f"{trial.id}-{trial.try_number}"
        return await asyncio.to_thread(lambda: CallCounts.of(read_calls(folder)).usage)

    lease = timedelta(seconds=settings.lease_sec)
    return Recovery(
        store,
        installation.wake_up,
        clock,
        worker_is_dead=is_dead,
        trust=trust,
        autopsy=autopsy,
        used_by=used_by,
        is_kept=final_states_of(settings).has,
        settle=lambda: Ledgers.beside(settings.work_dir).settle_dead(store.budgets, lease, clock),
        remove_folders=lambda: _remove_dead_folders(installation),
    )


def _clock_duty(installation: Installation) -> list[Duty]:
    clock, store = installation.clock, installation.store
    if not isinstance(clock, StoreClock):
        return []

    async def look() -> None:
        await clock.look(lambda: store_time(store))
        clock.require_near()

    return [Duty("clock", look, installation.settings.heartbeat_sec)]


def _publishing(installation: Installation) -> list[Duty]:
    settings, clock = installation.settings, installation.clock
    if not settings.cloudwatch_namespace:
        return []
    from seatrial.adapters.aws_calls import AwsCalls
    from seatrial.adapters.cloudwatch import CloudWatch

    sink = CloudWatch(AwsCalls.to("cloudwatch", settings.aws_region), settings.cloudwatch_namespace)
    signals, process, every_sec = fleet_signals(installation), str(WorkerName.mine()), settings.cloudwatch_sec
    publisher = Publisher(signals, sink, installation.store.duties, clock, process, every_sec)
    return [Duty("cloudwatch", publisher.step, every_sec)]


def fleet_signals(installation: Installation) -> FleetSignals:
    """What autoscalers follow."""
    settings, store, clock = installation.settings, installation.store, installation.clock
    lease = timedelta(seconds=settings.lease_sec)

    async def live_workers() -> list[WorkerRow]:
        rows = await store.workers.all(seen_since=clock() - lease)
        return [row for row in rows if not is_dead(row.worker)]

    default = MachineSize(memory_mb=settings.default_memory_mb, cpus=settings.default_cpus)
    machine = None
    if settings.machine_memory_mb and settings.machine_cpus:
        machine = MachineSize(memory_mb=settings.machine_memory_mb, cpus=settings.machine_cpus)
    unit = MachineUnit(machine=machine, default=default, overcommit=overcommit_of(settings))
    return FleetSignals(store, clock, unit, live_workers)


async def clean_leftovers(installation: Installation) -> int:
    """Removes sandboxes whose try is over or whose process died, and folders of dead workers. Returns the number of
    sandboxes.

    An expired lease alone does not end a try; ``Recovery`` decides that."""
    from seatrial.sandboxes.oci.leftovers import remove_strays
    from seatrial.sandboxes.options import SandboxOptions
    from seatrial.sandboxes.sweep import sweep

    options = SandboxOptions.of(installation.settings)
    await _remove_dead_folders(installation)
    await _sweep_final_states(installation)
    removed = await sweep(options, installation.id, lambda: _running_tries(installation))
    return removed + await asyncio.to_thread(remove_strays, options.run_dir, time.time())


async def _remove_dead_folders(installation: Installation) -> None:
    settings = installation.settings
    workers = {row.worker: installation.clock() - row.seen_at for row in await installation.store.workers.all()}
    known = {name for name, silence in workers.items() if silence < _UNHEARD}
    silent = {name for name, silence in workers.items() if silence > timedelta(seconds=settings.lease_sec)}
    await remove_dead_work_dirs(settings.work_dir, known, time.time(), lambda: _running_tries(installation))
    await remove_lost_tries(settings.work_dir, silent, lambda: _running_tries(installation))


async def _running_tries(installation: Installation) -> set[tuple[int, int]]:
    """As (trial, try)."""
    rows = installation.store.trials.each(TrialFilter(states=(TrialState.RUNNING,)))
    return {(row.trial.id, row.trial.try_number) async for row in rows}


async def clean_network() -> int:
    """Removes firewall tables and interfaces of dead processes. Workers do the same when they set up a network."""
    if os.geteuid() != 0 or not shutil.which("nft"):
        return 0
    from seatrial.sandboxes.network.uplink import clear_leftovers

    return await asyncio.to_thread(clear_leftovers)


def final_states_of(settings: Settings) -> FinalStates:
    return FinalStates.beside(settings.work_dir, settings.final_states_mb)


async def _sweep_final_states(installation: Installation) -> None:
    """Removes the states of trials that are graded or gone. One that ended otherwise may be retried."""
    states, wanted = final_states_of(installation.settings), set[int]()
    for trial_id in states.trials():
        with suppress(NotFound):
            trial = (await installation.store.trials.get(trial_id)).trial
            wanted |= {trial_id} if not trial.graded and trial.outcome is not Outcome.CANCELLED else set()
    await states.sweep(wanted, time.time())
