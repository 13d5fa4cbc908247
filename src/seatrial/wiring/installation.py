"""An installation: its store, files, queue, library, keys and the use cases around them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from seatrial.adapters.archives import ArchiveFiles
from seatrial.adapters.blobs_files import FileBlobs
from seatrial.adapters.blobs_objects import Connection, ObjectBlobs, S3Access
from seatrial.adapters.model_prices import ModelPrices
from seatrial.adapters.seal_fernet import FernetSeal
from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.adapters.tasks_harbor import HarborTasks
from seatrial.adapters.tasks_terminalbench1 import TerminalBench1Tasks
from seatrial.adapters.wake_up_local import LocalWakeUp
from seatrial.domain.agents.catalogue import agent_names, keys_for, needs_model, takes_model
from seatrial.engine.blobs_owner import claim_place
from seatrial.engine.budgets.cap_usage import CapUsages
from seatrial.engine.clock import Clock, StoreClock
from seatrial.engine.jobs.admission import OUR_SANDBOXES, Admission, Ceilings
from seatrial.engine.jobs.budget_rules import BudgetRules
from seatrial.engine.jobs.control import JobControl
from seatrial.engine.jobs.keys import KeyRing, WorkerSeals
from seatrial.engine.jobs.places import Places
from seatrial.engine.jobs.submit import Capabilities, Submission
from seatrial.engine.tasks.library import TaskLibrary
from seatrial.errors import SetupProblem, StoreUnavailable
from seatrial.ports.blobs import Blobs
from seatrial.ports.seal import Seal
from seatrial.ports.store import Store
from seatrial.ports.tasks import TaskReader
from seatrial.ports.wake_up import WakeUp
from seatrial.settings import Settings
from seatrial.sizing import largest_packing, packing_here
from seatrial.system.processes import WorkerName, is_dead

log = logging.getLogger(__name__)


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

    @property
    def cap_usages(self) -> CapUsages:
        """What was spent of the caps on models."""
        return CapUsages(self.store.budgets, self.settings.day_cap)


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


def budget_rules_of(settings: Settings) -> BudgetRules:
    return BudgetRules(ModelPrices(settings.model_prices_file), settings.day_cap)


def _assemble(
    settings: Settings, store: Store, wake_up: WakeUp, name: str, clock: Clock, admission: Admission
) -> Installation:
    blobs, seal = blobs_of(settings), FernetSeal(settings.home, settings.secret_key)
    keys, places = _key_ring(settings, store, seal, clock, admission), _places(settings, store, clock, admission)
    budgets = budget_rules_of(settings)
    return Installation(
        settings=settings,
        store=store,
        blobs=blobs,
        wake_up=wake_up,
        library=_library(settings, store, blobs, clock),
        submission=Submission(store, wake_up, clock, keys, _capabilities(settings), admission, places, budgets),
        places=places,
        jobs=JobControl(store, blobs, wake_up, clock, keys, admission.ceilings, budgets),
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


def blobs_of(settings: Settings) -> Blobs:
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
        largest_packing(settings),
        packing_here(settings) if hires and not settings.concurrency else None,
        takes_any=hires and settings.concurrency > 0,
    )


async def _clock_of(store: Store) -> Clock:
    """The clock of a database server, if there is one. All machines then judge leases by the same clock."""
    clock = StoreClock()
    await clock.look(lambda: store_time(store))
    return clock


async def store_time(store: Store) -> datetime | None:
    return (await store.facts()).now


def task_readers() -> tuple[TaskReader, ...]:
    """One reader for each task format."""
    return HarborTasks(), TerminalBench1Tasks()


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


def _capabilities(settings: Settings) -> Capabilities:
    async def runs_services() -> bool:
        from seatrial.sandboxes.selection import engine_answers

        return await engine_answers(settings.docker_host, for_others=True)

    return Capabilities(agent_names, needs_model, takes_model, _has_sandbox, runs_services, settings.sandbox)


def _has_sandbox(name: str) -> bool:
    """Whether this names one of our sandboxes, an environment of Harbor, or a class to import."""
    kind, colon, rest = name.partition(":")
    if kind == "harbor":
        from harbor.models.environment_type import EnvironmentType

        return rest in {known.value for known in EnvironmentType}
    return bool(rest) if colon else name in ("auto", "oci", "docker")
