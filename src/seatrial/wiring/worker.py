"""Workers: around Harbor, or around any other runner."""

from __future__ import annotations

import asyncio
import os
import platform
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING

from seatrial.adapters import final_state_archive
from seatrial.adapters.machine_usage_files import FileMachineUsage
from seatrial.adapters.model_prices import ModelPrices
from seatrial.domain.agents.catalogue import agent_names
from seatrial.domain.fleet.needs import Abilities
from seatrial.domain.sandbox_choice import AUTOMATIC
from seatrial.engine.budgets.ledger import Ledgers
from seatrial.engine.budgets.slices import Budgets
from seatrial.engine.duties import Duties
from seatrial.engine.fleet.signals import this_machine
from seatrial.engine.jobs.budget_rules import BudgetRules
from seatrial.engine.live.watch import LiveLog
from seatrial.engine.provider_pace import ProviderPace
from seatrial.engine.trials.execute import Executor, Records, Reports, TryLimits
from seatrial.engine.trials.found_files import SaveLimits
from seatrial.engine.trials.hand_over import HandOver
from seatrial.engine.trials.phases import PhaseLog
from seatrial.engine.trials.trial_slots import TrialSlots
from seatrial.installed import is_installed
from seatrial.ports.runner import Runner
from seatrial.ports.store import Heartbeat
from seatrial.settings import Settings, package_environment
from seatrial.sizing import packing_here
from seatrial.suspect_process import SuspectProcess
from seatrial.system.disk import Disk
from seatrial.system.machine import Hardware, MemoryBrake
from seatrial.system.processes import WorkerName, boot_id
from seatrial.wiring.installation import Installation, ceilings_of, claim_blobs
from seatrial.wiring.machine import Machine, tenure_of
from seatrial.wiring.tools import layers_of
from seatrial.wiring.upkeep import ModelCalls, clean_leftovers, final_states_of, upkeep_of
from seatrial.worker import Claiming, Pace, Worker, beat_forever
from seatrial.worker_exits import ExitNotes, ExitWatch, memory_kills, worker_of

if TYPE_CHECKING:
    from seatrial.adapters.runner_harbor.runner import HarborRunner

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a worker process stands among others."""

    supervisor: int | None = None
    """The process that started it and sees how it ends."""
    environment: Mapping[str, str] | None = None
    """For processes that it starts itself. ``None``: it starts none."""
    group: str | None = None
    """The only suspected trials that it runs."""
    sandboxes: tuple[str, ...] = (AUTOMATIC,)
    """Known to work on this machine. It claims only trials for these until it is told of others."""


def make_worker(installation: Installation, capacity: int, job_id: int | None = None) -> Worker:
    """A worker of this process. Imports Harbor, and removes from the environment what tasks may not read."""
    pace, budgets = provider_pace_of(installation), budgets_of(installation)
    runner = _harbor_runner(installation, budgets, pace)
    return assemble_worker(
        installation,
        runner,
        capacity,
        job_id,
        clean=lambda: clean_leftovers(installation),
        calls=ModelCalls(pace, budgets, runner.close),
    )


async def load_worker(
    installation: Installation, capacity: int, place: Place | None = None, machine: Machine | None = None
) -> Worker:
    """Like ``make_worker``, and sends heartbeats while Harbor is imported, which takes seconds on a busy machine."""
    place = place or Place()
    about = _about(installation, capacity, place).model_copy(update={"starting": True})
    every_sec = installation.settings.heartbeat_sec
    pace, budgets = provider_pace_of(installation), budgets_of(installation)
    beating = asyncio.create_task(beat_forever(installation.store, about, installation.clock, every_sec))
    try:
        runner = await asyncio.to_thread(_harbor_runner, installation, budgets, pace)
        await claim_blobs(installation, patient=True)
        await installation.library.forget_removed()
    except BaseException:
        await installation.store.workers.forget(about.worker)
        raise
    finally:
        beating.cancel()
    worker = assemble_worker(
        installation,
        runner,
        capacity,
        clean=lambda: clean_leftovers(installation),
        place=place,
        machine=machine,
        calls=ModelCalls(pace, budgets, runner.close),
    )
    worker.can_use_only(place.sandboxes)
    return worker


def assemble_worker(
    installation: Installation,
    runner: Runner,
    capacity: int,
    job_id: int | None = None,
    clean: Callable[[], Awaitable[int]] | None = None,
    place: Place | None = None,
    machine: Machine | None = None,
    calls: ModelCalls | None = None,
) -> Worker:
    """A worker around any runner. Tests and benchmarks pass a fake one. ``clean`` removes leftovers; it returns how
    many. A ``capacity`` of 0 packs trials by what their tasks declare. ``machine`` is given to workers that a platform
    may end, or that leave when they are idle."""
    settings, place = installation.settings, place or Place()
    slots, brake = _slots(settings, capacity, job_id), _memory_brake(settings)
    upkeep = upkeep_of(installation, clean, calls)
    return Worker(
        installation.store,
        installation.wake_up,
        installation.clock,
        _executor(installation, runner, upkeep.duties),
        _about(installation, capacity, place),
        Pace(
            timedelta(seconds=settings.lease_sec),
            settings.heartbeat_sec,
            settings.reap_sec,
            settings.drain_seconds or None,
        ),
        upkeep,
        Claiming(
            job_id,
            place.group,
            lambda: _shortage(settings) or brake(),
            slots,
            _suspect_process(settings, place),
            tenure_of(installation, machine) if machine is not None else None,
        ),
    )


def _about(installation: Installation, capacity: int, place: Place) -> Heartbeat:
    packing = packing_here(installation.settings)
    supervisor = worker_of(place.supervisor) if place.supervisor is not None else None
    cgroup, kills = memory_kills()
    return Heartbeat(
        supervisor=str(supervisor or ""),
        cgroup=cgroup,
        memory_kills=kills,
        worker=str(WorkerName.mine()),
        host=socket.gethostname(),
        pid=os.getpid(),
        capacity=capacity or packing.usual_count,
        started_at=installation.clock(),
        agents=agent_names(),
        seal=installation.seal.fingerprint(),
        machine=this_machine(),
        packing=None if capacity else packing,
        versions={"seatrial": version("seatrial"), "harbor": version("harbor")},
    )


def _slots(settings: Settings, capacity: int, job_id: int | None) -> TrialSlots:
    """The worker of one job tries everything: the user who started it here wants to see what is missing."""
    abilities = _abilities(settings) if job_id is None else Abilities()
    knows = is_installed if job_id is None else _everything
    if capacity:
        return TrialSlots(capacity, abilities, knows=knows)
    usage = FileMachineUsage(settings.room_dir / (boot_id() or socket.gethostname()), WorkerName.mine().folder)
    return TrialSlots.packed(packing_here(settings), abilities, usage, knows)


def _everything(import_path: str) -> bool:
    return True


def _abilities(settings: Settings) -> Abilities:
    machine = platform.machine()
    return Abilities(
        architecture=_ARCHITECTURES.get(machine, machine), gpus=Hardware().gpus, elevated=settings.allow_privileged
    )


def _memory_brake(settings: Settings) -> MemoryBrake:
    return MemoryBrake(Hardware().memory, settings.memory_low_water_percent)


def _shortage(settings: Settings) -> str:
    """Tries and results may be on different disks, see ``Settings.work_dir``."""
    own = settings.work_dir.parent
    places = [settings.home, own] if own != settings.home and own.is_dir() else [settings.home]
    found = (Disk(place, settings.disk_low_water_mb).shortage() for place in places)
    return next(filter(None, found), "")


def _suspect_process(settings: Settings, place: Place) -> SuspectProcess | None:
    if place.environment is None or place.group is not None:
        return None
    return SuspectProcess(ExitWatch(ExitNotes.beside(settings.work_dir)), place.environment)


def _executor(installation: Installation, runner: Runner, duties: Duties) -> Executor:
    settings, store, clock = installation.settings, installation.store, installation.clock
    return Executor(
        Records(store, installation.blobs, installation.library, clock, _hand_over(installation)),
        runner,
        Reports(PhaseLog(store.trials, clock, duties=duties), LiveLog(store, clock, duties=duties)),
        TryLimits(
            settings.trial_limit_sec,
            ceilings_of(settings),
            SaveLimits(settings.max_kept_files, settings.max_kept_mb << 20, settings.max_kept_depth),
            settings.blobs_patience_sec,
        ),
        settings.work_dir / WorkerName.mine().folder,
        installation.keys.for_agent,
    )


def _hand_over(installation: Installation) -> HandOver:
    states = final_states_of(installation.settings)
    return HandOver(states, installation.blobs, installation.seal, final_state_archive)


def provider_pace_of(installation: Installation) -> ProviderPace | None:
    if not installation.settings.provider_pace:
        return None
    return ProviderPace(installation.store.pace, str(WorkerName.mine()), installation.clock)


def budgets_of(installation: Installation) -> Budgets:
    settings = installation.settings
    lease = timedelta(seconds=settings.lease_sec)
    ledgers = Ledgers.beside(settings.work_dir)
    name, clock = str(WorkerName.mine()), installation.clock
    return Budgets(installation.store.budgets, name, clock, lease, day=settings.day_cap, ledgers=ledgers)


def _harbor_runner(installation: Installation, budgets: Budgets, pace: ProviderPace | None = None) -> HarborRunner:
    from seatrial.adapters.runner_harbor.process import collect_less_often, scrub_environment

    settings = installation.settings
    providers, packages = settings.provider_environment, package_environment()
    scrub_environment(settings.sandbox)

    from seatrial.adapters.runner_harbor.equip import ModelAccess
    from seatrial.adapters.runner_harbor.library_trial import LibraryTrials
    from seatrial.adapters.runner_harbor.runner import HarborRunner
    from seatrial.adapters.runner_harbor.spending import Spending, call_budget_of
    from seatrial.agents.kits.fitting import AgentKits
    from seatrial.agents.kits.shelf import KitShelf
    from seatrial.sandboxes.options import SandboxOptions
    from seatrial.sandboxes.selection import SandboxSelection

    options = SandboxOptions.of(settings)
    prices = ModelPrices(settings.model_prices_file)
    prices.load()  # now, in a thread: later it would delay the heartbeat
    rules = BudgetRules(prices, settings.day_cap)
    models = ModelAccess(
        settings.model_patience_sec,
        providers,
        pace,
        settings.pace_stops_clock,
        Spending(rules, prices.of, lambda order: call_budget_of(order, budgets, rules)),
    )
    trials = LibraryTrials(settings.tasks_dir)
    collect_less_often()
    shelf = KitShelf(options.kits_dir, packages, int(settings.kits_gb * 1e9))
    kits = AgentKits(shelf, installation.store.jobs.record_version)
    layers = layers_of(settings)
    return HarborRunner(options, installation.id, SandboxSelection(options), models, trials.create, kits, layers)
