"""The only place that knows which adapter serves which port.

``open_installation`` is what the entry points use; it imports no Harbor. ``make_worker`` adds what runs trials.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.adapters.archives import ArchiveFiles, ArchiveLimits, unpack
from seatrial.adapters.blobs_objects import ObjectBlobs
from seatrial.adapters.queue_local import LocalQueue
from seatrial.adapters.registry_harbor import open_dataset
from seatrial.adapters.seal_fernet import FernetSeal
from seatrial.adapters.store_sql.backup import backup, restore
from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.adapters.tasks_harbor import HarborTasks
from seatrial.adapters.tasks_terminalbench1 import TerminalBench1Tasks
from seatrial.disk import Disk
from seatrial.domain.catalogue import agent_names, keys_for, needs_model, takes_model
from seatrial.domain.task import Dataset
from seatrial.domain.trial import TrialState
from seatrial.engine.clock import Clock, system_clock
from seatrial.engine.jobs.admission import Admission
from seatrial.engine.jobs.capabilities import Capabilities
from seatrial.engine.jobs.ceilings import Ceilings
from seatrial.engine.jobs.choice import dataset_of
from seatrial.engine.jobs.control import JobControl
from seatrial.engine.jobs.keys import KeyRing
from seatrial.engine.jobs.submit import Submission
from seatrial.engine.live.watch import LiveLog
from seatrial.engine.tasks.library import TaskLibrary
from seatrial.engine.trials.execute import Executor
from seatrial.engine.trials.phases import PhaseLog
from seatrial.engine.trials.recover import Recovery
from seatrial.engine.trials.retention import remove_dead_work_dirs
from seatrial.errors import Conflict, InvalidInput, SetupProblem
from seatrial.ports.blobs import Blobs
from seatrial.ports.queue import Queue
from seatrial.ports.runner import Runner
from seatrial.ports.seal import Seal
from seatrial.ports.store import Heartbeat, Store, TrialFilter
from seatrial.ports.tasks import TaskReader
from seatrial.processes import WorkerName, is_dead
from seatrial.settings import Settings
from seatrial.worker import Worker, beat_forever

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
    settings: Settings, clock: Clock = system_clock, *, at_the_machine: bool = False
) -> AsyncIterator[Installation]:
    """The installation in ``settings.home``, made on first use. ``at_the_machine``: jobs are given by its admin, at the
    command line, and not by callers of a service."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"The home {settings.home} cannot be made: {error.strerror}."
        raise SetupProblem(problem, fix="Set SEATRIAL_HOME to a folder that can be written.") from error
    await upgrade(settings.store_url)
    async with SqlStore.at(settings.store_url) as store:
        blobs = (
            ObjectBlobs.at(settings.files_url) if settings.files_url else ObjectBlobs.in_directory(settings.blobs_dir)
        )
        queue = LocalQueue(settings.home)
        files = ArchiveFiles(limit_bytes=settings.archive_limit_mb << 20)
        library = TaskLibrary(store, blobs, task_readers(), files, settings.tasks_dir, clock)
        seal = FernetSeal(settings.home, settings.secret_key)
        admission = admission_of(settings, at_the_machine)
        keys = KeyRing(store, store, seal, lambda: provider_keys(settings), keys_for, admission)
        submission = Submission(store, queue, clock, keys, _capabilities(settings), admission)
        jobs = JobControl(store, blobs, queue, clock, keys, admission.ceilings)
        name = await store.install_id()
        yield Installation(settings, store, blobs, queue, library, submission, jobs, keys, clock, name, seal)


def make_worker(installation: Installation, capacity: int, job_id: int | None = None) -> Worker:
    """A worker of this process. Imports Harbor, and scrubs this process's environment of what tasks may not read."""
    runner = _harbor_runner(installation)
    return assemble_worker(installation, runner, capacity, job_id, lambda: clean_leftovers(installation))


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
    name = WorkerName.mine()
    phases = PhaseLog(store, clock)
    executor = Executor(
        store,
        installation.blobs,
        runner,
        installation.library,
        phases,
        LiveLog(store, clock),
        clock,
        work_dir=settings.work_dir / name.folder,
        limit_sec=settings.trial_limit_sec,
        secrets=installation.keys.for_agent,
        ceilings=ceilings_of(settings),
    )
    return Worker(
        store,
        installation.queue,
        executor,
        phases,
        Recovery(store, installation.queue, clock, worker_is_dead=is_dead),
        clock,
        _about(installation, capacity),
        lease=timedelta(seconds=settings.lease_sec),
        heartbeat_sec=settings.heartbeat_sec,
        reap_sec=settings.reap_sec,
        clean_leftovers=clean,
        obstacle=Disk(settings.home, settings.disk_low_water_mb).shortage,
        job_id=job_id,
    )


def _about(installation: Installation, capacity: int) -> Heartbeat:
    return Heartbeat(
        worker=str(WorkerName.mine()),
        host=socket.gethostname(),
        pid=os.getpid(),
        capacity=capacity,
        started_at=installation.clock(),
        agents=agent_names(),
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
        await backup(settings.store_url, kept)
    await restore(settings.store_url, source)
    return kept


async def clean_leftovers(installation: Installation) -> int:
    """Removes sandboxes that nobody holds a lease on any more, and the folders of workers that died."""
    from seatrial.sandboxes.options import SandboxOptions
    from seatrial.sandboxes.sweep import sweep

    async def leased() -> set[tuple[int, int]]:
        now = installation.clock()
        rows = installation.store.trials(TrialFilter(states=(TrialState.RUNNING,)))
        return {
            (row.trial.id, row.trial.attempt)
            async for row in rows
            if row.trial.lease_until is not None and row.trial.lease_until > now
        }

    await remove_dead_work_dirs(installation.settings.work_dir)
    return await sweep(SandboxOptions.of(installation.settings), installation.id, leased)


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
