"""The only place that knows which adapter serves which port.

``open_installation`` is what the entry points use; it imports no Harbor. ``make_worker`` adds what runs trials.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.adapters.archives import ArchiveFiles, ArchiveLimits, unpack
from seatrial.adapters.blobs_objects import ObjectBlobs
from seatrial.adapters.queue_local import LocalQueue
from seatrial.adapters.registry_harbor import open_dataset
from seatrial.adapters.seal_fernet import FernetSeal
from seatrial.adapters.store_sql.backup import backup, restore, set_aside
from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.adapters.tasks_harbor import HarborTasks
from seatrial.adapters.tasks_terminalbench1 import TerminalBench1Tasks
from seatrial.disk import Disk
from seatrial.domain.catalogue import agent_names, keys_for, needs_model, takes_model
from seatrial.domain.task import Dataset
from seatrial.domain.trial import TrialState
from seatrial.engine.clock import Clock, StoreClock, system_clock
from seatrial.engine.duties import Duties
from seatrial.engine.jobs.admission import Admission
from seatrial.engine.jobs.capabilities import Capabilities
from seatrial.engine.jobs.ceilings import Ceilings
from seatrial.engine.jobs.choice import dataset_of
from seatrial.engine.jobs.control import JobControl
from seatrial.engine.jobs.keys import KeyRing, WorkerSeals
from seatrial.engine.jobs.submit import Submission
from seatrial.engine.live.watch import LiveLog
from seatrial.engine.tasks.library import TaskLibrary
from seatrial.engine.trials.execute import Executor
from seatrial.engine.trials.found_files import KeepLimits
from seatrial.engine.trials.lease_trust import LeaseTrust
from seatrial.engine.trials.phases import PhaseLog
from seatrial.engine.trials.recover import Recovery
from seatrial.engine.trials.retention import remove_dead_work_dirs, remove_lost_tries
from seatrial.errors import Conflict, InvalidInput, SetupProblem
from seatrial.ports.blobs import Blobs
from seatrial.ports.queue import Queue
from seatrial.ports.runner import Runner
from seatrial.ports.seal import Seal
from seatrial.ports.store import Heartbeat, Store, TrialFilter
from seatrial.ports.tasks import TaskReader
from seatrial.processes import WorkerName, is_dead
from seatrial.settings import Settings
from seatrial.worker import Pace, Worker, beat_forever

_LOOKS = 8
_UNHEARD = timedelta(days=1)
"""A worker that was not heard of for so long is not there."""

Duty = tuple[str, Callable[[], Awaitable[object]], float]
"""Its name, one step of it, and the seconds between two steps."""

if TYPE_CHECKING:
    from seatrial.sandboxes.images.assembly import Images
    from seatrial.sandboxes.selection import Health


@dataclass(frozen=True)
class Installation:
    """Everything an entry point needs to submit, list and read."""

    settings: Settings
    store: Store
    blobs: Blobs
    queue: Queue
    library: TaskLibrary
    submission: Submission
    jobs: JobControl
    keys: KeyRing
    clock: Clock
    id: str
    seal: Seal


@asynccontextmanager
async def open_installation(
    settings: Settings, clock: Clock | None = None, *, at_the_machine: bool = False, for_worker: bool = False
) -> AsyncIterator[Installation]:
    """The installation in ``settings.home``, made on first use. ``at_the_machine``: jobs are given by its admin, at the
    command line, and not by callers of a service. A worker's process opens fewer connections.

    Without a ``clock``, that of the store counts where it has one of its own, else the machine's."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"The home {settings.home} cannot be made: {error.strerror}."
        raise SetupProblem(problem, fix="Set SEATRIAL_HOME to a folder that can be written.") from error
    await upgrade(settings.store_url)
    connections = settings.worker_database_connections if for_worker else settings.database_connections
    async with SqlStore.at(settings.store_url, connections) as store:
        clock = clock or await _clock_of(store)
        blobs = (
            ObjectBlobs.at(settings.files_url) if settings.files_url else ObjectBlobs.in_directory(settings.blobs_dir)
        )
        queue = LocalQueue(settings.home)
        files = ArchiveFiles(limit_bytes=settings.archive_limit_mb << 20)
        library = TaskLibrary(store, blobs, task_readers(), files, settings.tasks_dir, clock)
        seal = FernetSeal(settings.home, settings.secret_key)
        admission = admission_of(settings, at_the_machine)
        workers = WorkerSeals(store, seal, clock, timedelta(seconds=settings.lease_sec), is_dead)
        keys = KeyRing(store, store, seal, lambda: provider_keys(settings), keys_for, admission, workers)
        submission = Submission(store, queue, clock, keys, _capabilities(settings), admission)
        jobs = JobControl(store, blobs, queue, clock, keys, admission.ceilings)
        name = await store.install_id()
        yield Installation(settings, store, blobs, queue, library, submission, jobs, keys, clock, name, seal)


async def _clock_of(store: Store) -> Clock:
    """Stores on a server have a clock of their own, which all machines judge leases by."""
    clock = StoreClock()
    await clock.look(lambda: _store_time(store))
    return clock


async def _store_time(store: Store) -> datetime | None:
    return (await store.facts()).now


def make_worker(installation: Installation, capacity: int, job_id: int | None = None) -> Worker:
    """A worker of this process. Imports Harbor, and scrubs this process's environment of what tasks may not read."""
    runner = _harbor_runner(installation)
    return assemble_worker(installation, runner, capacity, job_id, clean=lambda: clean_leftovers(installation))


async def hire_worker(installation: Installation, capacity: int) -> Worker:
    """``make_worker`` for one that others wait for: the store knows of it before Harbor is there.

    Importing that takes seconds on a busy machine."""
    about = _about(installation, capacity).model_copy(update={"starting": True})
    every_sec = installation.settings.heartbeat_sec
    beating = asyncio.create_task(beat_forever(installation.store, about, installation.clock, every_sec))
    try:
        runner = await asyncio.to_thread(_harbor_runner, installation)
    except BaseException:
        await installation.store.forget_worker(about.worker)
        raise
    finally:
        beating.cancel()
    return assemble_worker(installation, runner, capacity, clean=lambda: clean_leftovers(installation))


async def working_sandboxes(settings: Settings) -> tuple[str, ...]:
    """The sandboxes that really work on this machine. Takes a moment: each is tried."""
    return tuple(room.name for room in (await examine_sandboxes(settings)).rooms if room.works)


async def examine_sandboxes(settings: Settings) -> Health:
    """Each sandbox with what it needs and what is missing, for ``seatrial doctor``."""
    from seatrial.sandboxes.selection import examine

    return await examine(settings)


def images_of(settings: Settings, sandbox: str) -> Images:
    """The images that a kind of sandbox starts from."""
    from seatrial.sandboxes.images.assembly import oci_images
    from seatrial.sandboxes.options import SandboxOptions

    options = SandboxOptions.of(settings)
    if sandbox == "oci":
        return oci_images(options)
    if sandbox == "docker":
        from seatrial.sandboxes.docker.images import shared_engine_images

        return shared_engine_images(options)
    raise InvalidInput(f"{sandbox} keeps no images.", field="sandbox", fix="Say oci or docker.")


def assemble_worker(
    installation: Installation,
    runner: Runner,
    capacity: int,
    job_id: int | None = None,
    clean: Callable[[], Awaitable[int]] | None = None,
) -> Worker:
    """The same around any runner; tests and benchmarks hand in a fake one."""
    settings, store, clock = installation.settings, installation.store, installation.clock
    recovery = _recovery(installation)
    duties = Duties(clock, noticed=recovery.noticed)
    phases = PhaseLog(store, clock, duties=duties)
    executor = Executor(
        store,
        installation.blobs,
        runner,
        installation.library,
        phases,
        LiveLog(store, clock, duties=duties),
        clock,
        work_dir=settings.work_dir / WorkerName.mine().folder,
        limit_sec=settings.trial_limit_sec,
        secrets=installation.keys.for_agent,
        ceilings=ceilings_of(settings),
        keep_limits=KeepLimits(settings.max_kept_files, settings.max_kept_mb << 20, settings.max_kept_depth),
        blobs_patience_sec=settings.blobs_patience_sec,
    )
    return Worker(
        store,
        installation.queue,
        executor,
        phases,
        recovery,
        clock,
        _about(installation, capacity),
        Pace(timedelta(seconds=settings.lease_sec), settings.heartbeat_sec, settings.reap_sec),
        duties,
        extra=[
            *_clock_duty(installation),
            *([("leftovers", clean, settings.reap_sec)] if clean is not None else []),
        ],
        obstacle=Disk(settings.home, settings.disk_low_water_mb).shortage,
        job_id=job_id,
    )


@asynccontextmanager
async def keep_house(installation: Installation) -> AsyncIterator[Duties]:
    """What a service does beside its requests: trials of lost workers are recovered, also while no worker is there."""
    recovery = _recovery(installation)
    duties = Duties(installation.clock, noticed=recovery.noticed)
    settings = installation.settings
    steps = [("recovery", recovery.sweep, settings.reap_sec), *_clock_duty(installation)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(duties.repeat(*step), name=step[0]) for step in steps]
        try:
            yield duties
        finally:
            for task in tasks:
                task.cancel()


async def recover_lost(installation: Installation, waiting: Callable[[int, float], None]) -> int:
    """Queues or ends the trials of workers that are gone; says how many.

    Trials whose lease ran out may still have a worker that could not reach the store. Where there are any, ``waiting``
    is told how many and how long it takes, and they are looked at again after that."""
    recovery = _recovery(installation)
    found = await recovery.sweep()
    late = await recovery.late()
    if late:
        waiting(len(late), recovery.trust.grace_sec)
        for _ in range(_LOOKS):  # often enough to notice when the store goes away meanwhile
            await asyncio.sleep(recovery.trust.grace_sec / _LOOKS)
            found += await recovery.sweep()
        await asyncio.sleep(0.1)
        found += await recovery.sweep()
    return found


def _recovery(installation: Installation) -> Recovery:
    settings = installation.settings
    trust = LeaseTrust(settings.lease_sec, settings.heartbeat_sec, settings.reap_sec)
    return Recovery(installation.store, installation.queue, installation.clock, worker_is_dead=is_dead, trust=trust)


def _clock_duty(installation: Installation) -> list[Duty]:
    clock, store = installation.clock, installation.store
    if not isinstance(clock, StoreClock):
        return []
    return [("clock", lambda: clock.look(lambda: _store_time(store)), installation.settings.heartbeat_sec)]


def _about(installation: Installation, capacity: int) -> Heartbeat:
    return Heartbeat(
        worker=str(WorkerName.mine()),
        host=socket.gethostname(),
        pid=os.getpid(),
        capacity=capacity,
        started_at=installation.clock(),
        agents=agent_names(),
        seal=installation.seal.fingerprint(),
        versions={"seatrial": version("seatrial"), "harbor": version("harbor")},
    )


def task_readers() -> tuple[TaskReader, ...]:
    """One for each format of tasks."""
    return HarborTasks(), TerminalBench1Tasks()


def unpack_archive(settings: Settings, archive: Path, into: Path) -> None:
    """All of an archive that came from anywhere, checked, as the folder ``into``."""
    unpack(archive, into, ArchiveLimits(max_bytes=settings.archive_limit_mb << 20))


async def import_dataset(installation: Installation, registry: str, name: str, version: str | None) -> Dataset:
    """Takes a dataset of a Harbor registry file in, with its tasks. The same again gives the same dataset."""
    async with open_dataset(registry, name, version) as found:
        tasks = [task for path in found.paths for task in await installation.library.add(path)]
    tasks.sort(key=lambda task: task.name)
    dataset = dataset_of(found.name, found.version, found.description, tasks)
    return await installation.store.save_dataset(dataset, installation.clock())


async def backup_database(settings: Settings, target: Path) -> None:
    """A consistent copy of the database, while everything runs."""
    await backup(settings.store_url, target)


async def restore_database(settings: Settings, source: Path, force: bool) -> Path | None:
    """Puts a backup in the database's place. One that is there already is kept beside it; returns where."""
    present = settings.home / "seatrial.db"
    kept = None
    if not settings.database_url and present.exists():
        if not force:
            raise Conflict(f"There is a database in {settings.home}.", fix="Add --force; it will be kept beside.")
        kept = present.with_name(f"{present.name}.before-{system_clock():%Y%m%d-%H%M%S-%f}")
        await set_aside(settings.store_url, kept)
    await restore(settings.store_url, source)
    return kept


async def clean_leftovers(installation: Installation) -> int:
    """Removes sandboxes whose try is over or whose process died, and the folders of workers that died. Says how many
    sandboxes that were.

    A lease that ran out does not end a try; ``Recovery`` does, once that means something."""
    from seatrial.sandboxes.options import SandboxOptions
    from seatrial.sandboxes.strays import remove_strays
    from seatrial.sandboxes.sweep import sweep

    async def running() -> set[tuple[int, int]]:
        rows = installation.store.trials(TrialFilter(states=(TrialState.RUNNING,)))
        return {(row.trial.id, row.trial.attempt) async for row in rows}

    store, settings, options = installation.store, installation.settings, SandboxOptions.of(installation.settings)
    workers = {row.worker: installation.clock() - row.seen_at for row in await store.workers()}
    known = {name for name, silence in workers.items() if silence < _UNHEARD}
    silent = {name for name, silence in workers.items() if silence > timedelta(seconds=settings.lease_sec)}
    await remove_dead_work_dirs(settings.work_dir, known, time.time())
    await remove_lost_tries(settings.work_dir, silent, running)
    removed = await sweep(options, installation.id, running)
    return removed + await asyncio.to_thread(remove_strays, options.run_dir, time.time())


async def clean_network() -> int:
    """Removes firewall tables and interfaces of processes that died. Workers do so whenever they set up a network."""
    if os.geteuid() != 0 or not shutil.which("nft"):
        return 0
    from seatrial.sandboxes.network.uplink import clear_leftovers

    return await asyncio.to_thread(clear_leftovers)


def admission_of(settings: Settings, at_the_machine: bool) -> Admission:
    """What jobs may ask for at this door. The operator's own default sandbox is always among what is offered."""
    return Admission.of(
        at_the_machine,
        settings.allowed_agents,
        f"{settings.allowed_sandboxes} {settings.sandbox}",
        ceilings_of(settings),
        settings.allow_keys_in_sandbox,
    )


def ceilings_of(settings: Settings) -> Ceilings:
    return Ceilings(
        memory_mb=settings.max_memory_mb,
        cpus=settings.max_cpus,
        storage_mb=settings.max_storage_mb,
        trial_sec=settings.max_trial_sec,
        trials=settings.max_trials_per_job,
        attempts=settings.max_attempts,
    )


def provider_keys(settings: Settings) -> Mapping[str, str]:
    """Provider keys and addresses by environment name, from the environment and the settings."""
    keys = dict(settings.provider_environment)
    if settings.openrouter_api_key:
        keys["OPENROUTER_API_KEY"] = settings.openrouter_api_key
    return keys


def _harbor_runner(installation: Installation) -> Runner:
    from seatrial.adapters.runner_harbor.process import collect_less_often, scrub_environment

    settings = installation.settings
    _ = provider_keys(settings)  # read before the environment is scrubbed; the settings keep it
    scrub_environment(settings.sandbox)

    from seatrial.adapters.runner_harbor.equip import ModelAccess
    from seatrial.adapters.runner_harbor.library_trial import LibraryTrials
    from seatrial.adapters.runner_harbor.runner import HarborRunner
    from seatrial.sandboxes.options import SandboxOptions
    from seatrial.sandboxes.selection import SandboxSelection

    options = SandboxOptions.of(settings)
    models = ModelAccess(settings.model_patience_sec, settings.provider_environment)
    trials = LibraryTrials(settings.tasks_dir)
    collect_less_often()
    return HarborRunner(options, installation.id, SandboxSelection(options), models, trials.create)


def _capabilities(settings: Settings) -> Capabilities:
    async def runs_services() -> bool:
        from seatrial.sandboxes.selection import engine_answers

        return await engine_answers(settings.docker_host)

    return Capabilities(agent_names, needs_model, takes_model, _has_sandbox, runs_services, settings.sandbox)


def _has_sandbox(name: str) -> bool:
    """Whether a name means a sandbox of ours, an environment of Harbor, or a class that could be imported."""
    kind, colon, rest = name.partition(":")
    if kind == "harbor":
        from harbor.models.environment_type import EnvironmentType

        return rest in {known.value for known in EnvironmentType}
    return bool(rest) if colon else name in ("auto", "oci", "docker")
