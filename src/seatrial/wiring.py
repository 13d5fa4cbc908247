"""Chooses the adapter for each port. No other module knows adapters.

The entry points call ``open_installation``, which does not import Harbor. ``make_worker`` adds what runs trials.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import shlex
import shutil
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.adapters import final_state_archive
from seatrial.adapters.account_files import FileAccount
from seatrial.adapters.archives import ArchiveFiles, ArchiveLimits, unpack
from seatrial.adapters.blobs_files import FileBlobs
from seatrial.adapters.blobs_objects import Connection, ObjectBlobs, S3Access
from seatrial.adapters.model_list import listed_models
from seatrial.adapters.platform_shared import MachineLock, SharedProtection
from seatrial.adapters.registry_harbor import open_dataset
from seatrial.adapters.seal_fernet import FernetSeal
from seatrial.adapters.store_sql.backup import backup, restore, set_aside
from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.adapters.tasks_harbor import HarborTasks
from seatrial.adapters.tasks_terminalbench1 import TerminalBench1Tasks
from seatrial.adapters.wake_up_local import LocalWakeUp
from seatrial.disk import Disk
from seatrial.domain.catalogue import agent_names, keys_for, needs_model, takes_model
from seatrial.domain.needs import Abilities
from seatrial.domain.sandbox_choice import AUTOMATIC
from seatrial.domain.task import Dataset
from seatrial.domain.trial import Outcome, TrialState
from seatrial.domain.work_units import MachineSize
from seatrial.engine import provider_pace
from seatrial.engine.blobs_owner import claim_place
from seatrial.engine.clock import Clock, StoreClock, system_clock
from seatrial.engine.duties import Duties, Duty
from seatrial.engine.fleet.departure import depart
from seatrial.engine.fleet.publish import Publisher
from seatrial.engine.fleet.signals import FleetSignals, Yardstick, this_machine
from seatrial.engine.fleet.tenure import StayRules, Tenure
from seatrial.engine.jobs import settle
from seatrial.engine.jobs.admission import OUR_SANDBOXES, Admission, Ceilings
from seatrial.engine.jobs.choice import dataset_of
from seatrial.engine.jobs.control import JobControl
from seatrial.engine.jobs.keys import KeyRing, WorkerSeals
from seatrial.engine.jobs.places import Places
from seatrial.engine.jobs.submit import Capabilities, Submission
from seatrial.engine.live.watch import LiveLog
from seatrial.engine.provider_pace import ProviderPace
from seatrial.engine.tasks.library import TaskLibrary
from seatrial.engine.trials.autopsy import Autopsy, Witnesses
from seatrial.engine.trials.execute import Executor, Records, Reports, TryLimits
from seatrial.engine.trials.final_states import FinalStates
from seatrial.engine.trials.found_files import KeepLimits
from seatrial.engine.trials.hand_over import HandOver
from seatrial.engine.trials.phases import PhaseLog
from seatrial.engine.trials.recover import LeaseTrust, Recovery
from seatrial.engine.trials.retention import remove_dead_work_dirs, remove_lost_tries
from seatrial.engine.trials.room import Room
from seatrial.errors import Conflict, InvalidInput, NotFound, SetupProblem, StoreUnavailable
from seatrial.installed import is_installed
from seatrial.machine import Hardware, MemoryBrake
from seatrial.ports.blobs import Blobs
from seatrial.ports.platform import Departure, Notices, ScaleInProtection
from seatrial.ports.runner import Runner
from seatrial.ports.seal import Seal
from seatrial.ports.store import Heartbeat, Store, TrialFilter, WorkerRow
from seatrial.ports.tasks import TaskReader
from seatrial.ports.wake_up import WakeUp
from seatrial.processes import WorkerName, boot_id, is_dead
from seatrial.settings import Settings, tool_environment
from seatrial.sizing import largest_room, room_here
from seatrial.suspect_process import SuspectProcess
from seatrial.worker import Claiming, Pace, Upkeep, Worker, beat_forever
from seatrial.worker_exits import ExitNotes, ExitWatch, memory_kills, worker_of

log = logging.getLogger(__name__)

_LOOKS = 8
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_UNHEARD = timedelta(days=1)
"""A worker whose last heartbeat is older than this is gone."""

if TYPE_CHECKING:
    from celery import Celery

    from seatrial.sandboxes.images.assembly import Images
    from seatrial.sandboxes.selection import Health


@dataclass(frozen=True)
class Installation:
    """Everything an entry point needs to submit, list and read."""

    settings: Settings
    store: Store
    blobs: Blobs
    wake_up: WakeUp
    library: TaskLibrary
    submission: Submission
    places: Places
    jobs: JobControl
    keys: KeyRing
    clock: Clock
    id: str
    seal: Seal


@asynccontextmanager
async def open_installation(
    settings: Settings, clock: Clock | None = None, *, at_the_machine: bool = False, for_worker: bool = False
) -> AsyncIterator[Installation]:
    """Opens the installation in ``settings.home`` and creates it on first use.

    ``at_the_machine`` means that the operator submits jobs at the command line, and not the callers of a service.
    ``for_worker`` opens fewer connections to the database. ``clock`` defaults to the clock of a database server, or to
    the clock of this machine."""
    _make_home(settings.home)
    await upgrade(settings.store_url)
    connections = settings.worker_database_connections if for_worker else settings.database_connections
    async with SqlStore.at(settings.store_url, connections) as store:
        clock = clock or await _clock_of(store)
        admission = admission_of(settings, at_the_machine)
        async with _opened_wake_up(settings) as wake_up:
            yield _assemble(settings, store, wake_up, await store.install_id(), clock, admission)


def _assemble(
    settings: Settings, store: Store, wake_up: WakeUp, name: str, clock: Clock, admission: Admission
) -> Installation:
    blobs, seal = _blobs(settings), FernetSeal(settings.home, settings.secret_key)
    keys, places = _key_ring(settings, store, seal, clock, admission), _places(settings, store, clock, admission)
    return Installation(
        settings=settings,
        store=store,
        blobs=blobs,
        wake_up=wake_up,
        library=_library(settings, store, blobs, clock),
        submission=Submission(store, wake_up, clock, keys, _capabilities(settings), admission, places),
        places=places,
        jobs=JobControl(store, blobs, wake_up, clock, keys, admission.ceilings),
        keys=keys,
        clock=clock,
        id=name,
        seal=seal,
    )


def _make_home(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"The folder {home} cannot be created: {error.strerror}."
        raise SetupProblem(problem, fix="Set SEATRIAL_HOME to a folder that can be written.") from error


@asynccontextmanager
async def _opened_wake_up(settings: Settings) -> AsyncIterator[WakeUp]:
    wake_up = _wake_up(settings)
    try:
        yield wake_up
    finally:
        await wake_up.close()


def _wake_up(settings: Settings) -> WakeUp:
    """Celery if there is a broker; else the database server; else a file of this machine."""
    if settings.broker_url:
        from seatrial.adapters.wake_up_celery.wake_up import CeleryWakeUp

        return CeleryWakeUp(settings.broker_url, str(WorkerName.mine()))
    if settings.store_url.startswith("postgres"):
        from seatrial.adapters.wake_up_postgres import PostgresWakeUp

        return PostgresWakeUp(settings.store_url)
    return LocalWakeUp(settings.home)


def _blobs(settings: Settings) -> Blobs:
    scheme, _, place = settings.files_url.partition("://")
    if scheme in ("", "file"):
        return FileBlobs.in_directory(Path(place) if place else settings.blobs_dir)
    access = S3Access(
        endpoint=settings.s3_endpoint,
        region=settings.s3_region,
        path_style=settings.s3_path_style,
        access_key_id=settings.s3_access_key_id,
        secret_access_key=settings.s3_secret_access_key,
        session_token=settings.s3_session_token,
        encryption=settings.s3_encryption,
        kms_key_id=settings.s3_kms_key_id,
    )
    connection = Connection(timeout_sec=settings.blobs_timeout_sec, ca_file=settings.blobs_ca_file)
    return ObjectBlobs.at(settings.files_url, access, connection)


async def claim_blobs(installation: Installation, *, patient: bool = False) -> None:
    """Refuses a bucket with the files of another installation. ``patient``: a bucket that is away is no obstacle."""
    if place := installation.settings.files_url:
        try:
            await claim_place(installation.blobs, installation.id, place)
        except StoreUnavailable as fault:
            if not patient:
                raise
            log.warning("It is not known whose files are at %s: %s", place, fault)


def _library(settings: Settings, store: Store, blobs: Blobs, clock: Clock) -> TaskLibrary:
    files = ArchiveFiles(limit_bytes=settings.archive_limit_mb << 20)
    return TaskLibrary(store.tasks, blobs, task_readers(), files, settings.tasks_dir, clock)


def _key_ring(settings: Settings, store: Store, seal: Seal, clock: Clock, admission: Admission) -> KeyRing:
    workers = WorkerSeals(store.workers, seal, clock, timedelta(seconds=settings.lease_sec), is_dead)
    return KeyRing(store.provider_keys, store.jobs, seal, settings.provider_keys, keys_for, admission, workers)


def _places(settings: Settings, store: Store, clock: Clock, admission: Admission) -> Places:
    """A command at the machine starts a worker of its own, with the concurrency of the settings."""
    hires = admission.at_the_machine
    return Places(
        store,
        clock,
        timedelta(seconds=settings.lease_sec),
        is_dead,
        largest_room(settings),
        room_here(settings) if hires and not settings.concurrency else None,
        takes_any=hires and settings.concurrency > 0,
    )


async def _clock_of(store: Store) -> Clock:
    """The clock of a database server, if there is one. All machines then judge leases by the same clock."""
    clock = StoreClock()
    await clock.look(lambda: _store_time(store))
    return clock


async def _store_time(store: Store) -> datetime | None:
    return (await store.facts()).now


def make_worker(installation: Installation, capacity: int, job_id: int | None = None) -> Worker:
    """A worker of this process. Imports Harbor, and removes from the environment what tasks may not read."""
    pace = _provider_pace(installation)
    runner = _harbor_runner(installation, pace)
    return assemble_worker(
        installation, runner, capacity, job_id, clean=lambda: clean_leftovers(installation), pace=pace
    )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a worker process stands among others."""

    supervisor: int | None = None
    """The process that started it and sees how it ends."""
    environment: Mapping[str, str] | None = None
    """For processes that it starts itself. ``None``: it starts none."""
    group: str | None = None
    """The only suspected trials that it runs."""


async def load_worker(
    installation: Installation, capacity: int, place: Place | None = None, machine: Machine | None = None
) -> Worker:
    """Like ``make_worker``, and sends heartbeats while Harbor is imported, which takes seconds on a busy machine."""
    place = place or Place()
    about = _about(installation, capacity, place).model_copy(update={"starting": True})
    every_sec = installation.settings.heartbeat_sec
    pace = _provider_pace(installation)
    beating = asyncio.create_task(beat_forever(installation.store, about, installation.clock, every_sec))
    try:
        runner = await asyncio.to_thread(_harbor_runner, installation, pace)
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
        pace=pace,
        machine=machine,
    )
    worker.can_use_only((AUTOMATIC,))  # until each kind was tried
    return worker


async def examine_sandboxes(settings: Settings) -> Health:
    """Each kind of sandbox with what it needs and what is missing. Starts each of them once."""
    from seatrial.sandboxes.options import SandboxOptions
    from seatrial.sandboxes.selection import examine

    return await examine(SandboxOptions.of(settings))


def images_of(settings: Settings, sandbox: str) -> Images:
    """The images from which this kind of sandbox starts."""
    from seatrial.sandboxes.images.assembly import oci_images
    from seatrial.sandboxes.options import SandboxOptions

    options = SandboxOptions.of(settings)
    if sandbox == "oci":
        return oci_images(options)
    if sandbox == "docker":
        from seatrial.sandboxes.docker.images import shared_engine_images

        return shared_engine_images(options)
    raise InvalidInput(f"The sandbox {sandbox} has no images.", field="sandbox", fix="Use oci or docker.")


def assemble_worker(
    installation: Installation,
    runner: Runner,
    capacity: int,
    job_id: int | None = None,
    clean: Callable[[], Awaitable[int]] | None = None,
    place: Place | None = None,
    pace: ProviderPace | None = None,
    machine: Machine | None = None,
) -> Worker:
    """A worker around any runner. Tests and benchmarks pass a fake one. ``clean`` removes leftovers; it returns how
    many. A ``capacity`` of 0 packs trials by what their tasks declare. ``pace`` is that of the runner's calls to
    models. ``machine`` is given to workers that a platform may end, or that leave when they are idle."""
    settings, place = installation.settings, place or Place()
    room, brake = _room(settings, capacity, job_id), _memory_brake(settings)
    upkeep = _upkeep(installation, clean, pace)
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
        Claiming(job_id, place.group, lambda: _shortage(settings) or brake(), room),
        _suspect_process(settings, place),
        tenure=_tenure(installation, machine) if machine is not None else None,
    )


def _memory_brake(settings: Settings) -> MemoryBrake:
    return MemoryBrake(Hardware().memory, settings.memory_low_water_percent)


def _room(settings: Settings, capacity: int, job_id: int | None) -> Room:
    """The worker of one job tries everything: whoever started it here wants to see what is missing."""
    abilities = _abilities(settings) if job_id is None else Abilities()
    knows = is_installed if job_id is None else _everything
    if capacity:
        return Room(capacity, abilities, knows=knows)
    account = FileAccount(settings.room_dir / (boot_id() or socket.gethostname()), WorkerName.mine().folder)
    return Room.packed(room_here(settings), abilities, account, knows)


def _everything(import_path: str) -> bool:
    return True


def _abilities(settings: Settings) -> Abilities:
    machine = platform.machine()
    return Abilities(
        architecture=_ARCHITECTURES.get(machine, machine), gpus=Hardware().gpus, elevated=settings.allow_privileged
    )


def _suspect_process(settings: Settings, place: Place) -> SuspectProcess | None:
    if place.environment is None or place.group is not None:
        return None
    return SuspectProcess(ExitWatch(ExitNotes.beside(settings.work_dir)), place.environment)


@dataclass(frozen=True)
class Machine:
    """This machine, as the platform that it belongs to sees it. All of its worker processes share it."""

    alive: MachineLock
    stays: StayRules
    protection: ScaleInProtection | None = None
    notices: Notices | None = None
    departure: Departure | None = None


async def machine_of(settings: Settings) -> Machine:
    """Call it before ``load_worker``, which removes variables from the environment that AWS tools look for."""
    folder = settings.cache / "machine"
    stays = StayRules(settings.leave_when_idle_sec, settings.minimum_workers, timedelta(seconds=settings.lease_sec))
    alive, busy = MachineLock(folder / "alive"), MachineLock(folder / "busy")
    await alive.share()
    if settings.platform == "ec2":
        from seatrial.adapters.platform_ec2 import Ec2Group, Ec2Notices, InstanceMetadata

        metadata = InstanceMetadata(settings.ec2_metadata_url)
        group = await Ec2Group.of_this_instance(metadata, settings.ec2_lifecycle_hook)
        return Machine(alive, stays, SharedProtection(group, busy), Ec2Notices(metadata), group)
    if settings.platform == "ecs":
        from seatrial.adapters.platform_ecs import EcsTask

        if not settings.ecs_agent_uri:
            raise SetupProblem("SEATRIAL_PLATFORM is ecs, and ECS_AGENT_URI is not set.", fix="Run it in an ECS task.")
        return Machine(alive, stays, SharedProtection(EcsTask(settings.ecs_agent_uri), busy))
    return Machine(alive, stays)


def _tenure(installation: Installation, machine: Machine) -> Tenure:
    return Tenure(
        str(WorkerName.mine()),
        installation.store,
        installation.clock,
        machine.stays,
        machine.protection,
        machine.notices,
    )


async def leave_machine(settings: Settings, machine: Machine, *, idle: bool, noticed: bool) -> None:
    """After a worker has left. Only the last worker process of a machine ends it."""
    if not machine.alive.leave_and_take_alone() or not (idle or noticed):
        return
    if machine.departure is not None:
        await depart(machine.departure, idle=idle, noticed=noticed)
    if idle and settings.on_leave:
        command = shlex.split(settings.on_leave)
        process = await asyncio.create_subprocess_exec(*command, env=tool_environment())
        if status := await process.wait():
            raise SetupProblem(f"SEATRIAL_ON_LEAVE ended with status {status}: {settings.on_leave}")


def _upkeep(
    installation: Installation, clean: Callable[[], Awaitable[int]] | None, pace: ProviderPace | None = None
) -> Upkeep:
    recovery = _recovery(installation)
    settler = settle.Settler(installation.store, installation.wake_up, installation.clock)
    extra = [*_clock_duty(installation), Duty("settling", settler.sweep, settle.EVERY_SEC)]
    if clean is not None:
        extra.append(Duty("leftovers", clean, installation.settings.reap_sec))
    if pace is not None:
        extra.append(Duty("provider pace", pace.sync, provider_pace.EVERY_SEC))
    return Upkeep(Duties(installation.clock, noticed=recovery.noticed), recovery, extra)


def _shortage(settings: Settings) -> str:
    """Tries and results may be on different disks, see ``Settings.work_dir``."""
    own = settings.work_dir.parent
    places = [settings.home, own] if own != settings.home and own.is_dir() else [settings.home]
    found = (Disk(place, settings.disk_low_water_mb).shortage() for place in places)
    return next(filter(None, found), "")


def _executor(installation: Installation, runner: Runner, duties: Duties) -> Executor:
    settings, store, clock = installation.settings, installation.store, installation.clock
    return Executor(
        Records(store, installation.blobs, installation.library, clock, _hand_over(installation)),
        runner,
        Reports(PhaseLog(store.trials, clock, duties=duties), LiveLog(store, clock, duties=duties)),
        TryLimits(
            settings.trial_limit_sec,
            ceilings_of(settings),
            KeepLimits(settings.max_kept_files, settings.max_kept_mb << 20, settings.max_kept_depth),
            settings.blobs_patience_sec,
        ),
        settings.work_dir / WorkerName.mine().folder,
        installation.keys.for_agent,
    )


def final_states_of(settings: Settings) -> FinalStates:
    return FinalStates.beside(settings.work_dir, settings.final_states_mb)


def _hand_over(installation: Installation) -> HandOver:
    states = final_states_of(installation.settings)
    return HandOver(states, installation.blobs, installation.seal, final_state_archive)


async def _sweep_final_states(installation: Installation) -> None:
    """Removes the states of trials that are graded or gone. One that ended otherwise may be retried."""
    states, wanted = final_states_of(installation.settings), set[int]()
    for trial_id in states.trials():
        with suppress(NotFound):
            trial = (await installation.store.trials.get(trial_id)).trial
            wanted |= {trial_id} if not trial.graded and trial.outcome is not Outcome.CANCELLED else set()
    await states.sweep(wanted, time.time())


@asynccontextmanager
async def recover_in_background(installation: Installation) -> AsyncIterator[Duties]:
    """Recovers trials of lost workers while a service runs, because there may be no worker that could do it."""
    upkeep = _upkeep(installation, clean=None)
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
    return FleetSignals(store, clock, Yardstick(machine=machine, default=default), live_workers)


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
    return Recovery(store, installation.wake_up, clock, worker_is_dead=is_dead, trust=trust, autopsy=autopsy)


def _clock_duty(installation: Installation) -> list[Duty]:
    clock, store = installation.clock, installation.store
    if not isinstance(clock, StoreClock):
        return []

    async def look() -> None:
        await clock.look(lambda: _store_time(store))
        clock.require_near()

    return [Duty("clock", look, installation.settings.heartbeat_sec)]


def _about(installation: Installation, capacity: int, place: Place) -> Heartbeat:
    packing = room_here(installation.settings)
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


def task_readers() -> tuple[TaskReader, ...]:
    """One reader for each task format."""
    return HarborTasks(), TerminalBench1Tasks()


def unpack_archive(settings: Settings, archive: Path, into: Path) -> None:
    """Checks an untrusted archive and unpacks it as the folder ``into``."""
    unpack(archive, into, ArchiveLimits(max_bytes=settings.archive_limit_mb << 20))


async def import_dataset(
    installation: Installation, registry: str, name: str, version: str | None, *, at_the_machine: bool = False
) -> Dataset:
    """Imports a dataset of a Harbor registry file with its tasks. Importing it again returns the same dataset."""
    async with open_dataset(registry, name, version, anywhere=at_the_machine) as found:
        tasks = [task for path in found.paths for task in await installation.library.add(path)]
    tasks.sort(key=lambda task: task.name)
    dataset = dataset_of(found.name, found.version, found.description, tasks)
    return await installation.store.tasks.save_dataset(dataset, installation.clock())


async def backup_database(settings: Settings, target: Path) -> None:
    """Writes a consistent copy of the database. The service may keep running."""
    await backup(settings.store_url, target)


async def restore_database(settings: Settings, source: Path, force: bool) -> Path | None:
    """Replaces the database by a backup. Renames an existing database and returns its new path."""
    present = settings.home / "seatrial.db"
    kept = None
    if not settings.database_url and present.exists():
        if not force:
            raise Conflict(
                f"There is a database in {settings.home}.", fix="Add --force; the database is renamed and kept."
            )
        kept = present.with_name(f"{present.name}.before-{system_clock():%Y%m%d-%H%M%S-%f}")
        await set_aside(settings.store_url, kept)
    await restore(settings.store_url, source)
    return kept


async def clean_leftovers(installation: Installation) -> int:
    """Removes sandboxes whose try is over or whose process died, and folders of dead workers. Returns the number of
    sandboxes.

    An expired lease alone does not end a try; ``Recovery`` decides that."""
    from seatrial.sandboxes.oci.leftovers import remove_strays
    from seatrial.sandboxes.options import SandboxOptions
    from seatrial.sandboxes.sweep import sweep

    async def running() -> set[tuple[int, int]]:
        rows = installation.store.trials.each(TrialFilter(states=(TrialState.RUNNING,)))
        return {(row.trial.id, row.trial.try_number) async for row in rows}

    store, settings, options = installation.store, installation.settings, SandboxOptions.of(installation.settings)
    workers = {row.worker: installation.clock() - row.seen_at for row in await store.workers.all()}
    known = {name for name, silence in workers.items() if silence < _UNHEARD}
    silent = {name for name, silence in workers.items() if silence > timedelta(seconds=settings.lease_sec)}
    await remove_dead_work_dirs(settings.work_dir, known, time.time())
    await remove_lost_tries(settings.work_dir, silent, running)
    await _sweep_final_states(installation)
    removed = await sweep(options, installation.id, running)
    return removed + await asyncio.to_thread(remove_strays, options.run_dir, time.time())


async def clean_network() -> int:
    """Removes firewall tables and interfaces of dead processes. Workers do the same when they set up a network."""
    if os.geteuid() != 0 or not shutil.which("nft"):
        return 0
    from seatrial.sandboxes.network.uplink import clear_leftovers

    return await asyncio.to_thread(clear_leftovers)


def admission_of(settings: Settings, at_the_machine: bool) -> Admission:
    """What jobs may ask for. The operator's default sandbox is always allowed."""
    agents = frozenset(settings.allowed_agents.replace(",", " ").split())
    sandboxes = OUR_SANDBOXES | {settings.sandbox, *settings.allowed_sandboxes.replace(",", " ").split()}
    return Admission(at_the_machine, agents, sandboxes, ceilings_of(settings), settings.allow_keys_in_sandbox)


def ceilings_of(settings: Settings) -> Ceilings:
    return Ceilings(
        memory_mb=settings.max_memory_mb,
        cpus=settings.max_cpus,
        storage_mb=settings.max_storage_mb,
        trial_sec=settings.max_trial_sec,
        trials=settings.max_trials_per_job,
        attempts=settings.max_attempts,
    )


def _provider_pace(installation: Installation) -> ProviderPace | None:
    if not installation.settings.provider_pace:
        return None
    return ProviderPace(installation.store.pace, str(WorkerName.mine()), installation.clock)


def _harbor_runner(installation: Installation, pace: ProviderPace | None = None) -> Runner:
    from seatrial.adapters.runner_harbor.process import collect_less_often, scrub_environment

    settings = installation.settings
    providers = settings.provider_environment
    scrub_environment(settings.sandbox)

    from seatrial.adapters.runner_harbor.equip import ModelAccess
    from seatrial.adapters.runner_harbor.library_trial import LibraryTrials
    from seatrial.adapters.runner_harbor.runner import HarborRunner
    from seatrial.sandboxes.options import SandboxOptions
    from seatrial.sandboxes.selection import SandboxSelection

    options = SandboxOptions.of(settings)
    models = ModelAccess(settings.model_patience_sec, providers, pace, settings.pace_stops_clock)
    trials = LibraryTrials(settings.tasks_dir)
    collect_less_often()
    return HarborRunner(options, installation.id, SandboxSelection(options), models, trials.create)


def _capabilities(settings: Settings) -> Capabilities:
    async def runs_services() -> bool:
        from seatrial.sandboxes.selection import engine_answers

        return await engine_answers(settings.docker_host, for_others=True)

    return Capabilities(agent_names, needs_model, takes_model, _has_sandbox, runs_services, settings.sandbox)


def celery_tools(settings: Settings) -> Celery:
    """The app that Celery's own programs load."""
    from seatrial.adapters.wake_up_celery.app import celery_app

    return celery_app(settings.broker_url)


def model_names() -> frozenset[str]:
    """The models that LiteLLM lists."""
    return listed_models()


def _has_sandbox(name: str) -> bool:
    """Whether this names one of our sandboxes, an environment of Harbor, or a class to import."""
    kind, colon, rest = name.partition(":")
    if kind == "harbor":
        from harbor.models.environment_type import EnvironmentType

        return rest in {known.value for known in EnvironmentType}
    return bool(rest) if colon else name in ("auto", "oci", "docker")
