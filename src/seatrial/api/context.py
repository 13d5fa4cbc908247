"""What request handlers use. Created once when the service starts; FastAPI injects it."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Self

from fastapi import Depends, Header, Request

from seatrial.api.gates.access import Access
from seatrial.api.gates.identity import Caller as Caller
from seatrial.api.gates.identity import FailureLimit, Identities
from seatrial.api.gates.link_access import LinkAccess
from seatrial.api.live.broadcast import Broadcast
from seatrial.engine.fleet.signals import FleetSignals
from seatrial.engine.jobs.model_urls import ModelUrls
from seatrial.engine.readiness import Readiness
from seatrial.engine.recent import EndedJobs
from seatrial.engine.reports.listing import JobListing
from seatrial.engine.tasks.served_tasks import ServedTasks
from seatrial.engine.triage import Author, TriageActions
from seatrial.engine.trials.trial_files import TryFiles
from seatrial.ports.store import Once
from seatrial.settings import Settings
from seatrial.system.disk import Disk
from seatrial.system.processes import WorkerName, is_dead
from seatrial.wiring import Installation, fleet_signals

_SEARCHES = 2


def _model_urls(settings: Settings, access: Access) -> ModelUrls:
    """Only a server that can be called from this machine alone, without a proxy in front, may call any address."""
    return ModelUrls(
        settings.model_url_allowlist,
        anywhere=access is Access.LOOPBACK and not settings.allowed_hosts,
        providers=settings.model_providers,
        own_addresses=settings.provider_environment,
    )


@dataclass(frozen=True)
class Service:
    """Everything behind the API. One per process."""

    installation: Installation
    access: Access
    identities: Identities
    links: LinkAccess
    model_urls: ModelUrls
    disk: Disk
    readiness: Readiness
    fleet: FleetSignals
    served_tasks: ServedTasks
    files: TryFiles
    listing: JobListing
    ended_jobs: EndedJobs
    """What was computed about ended jobs. Shared with ``listing``."""
    broadcast: Broadcast
    """Reads the store for all listeners."""
    waiting: asyncio.Semaphore
    """Slots for requests that wait for a trial, given out in order of arrival."""
    searching: asyncio.Semaphore
    """Slots for searches through the files of a job."""

    @classmethod
    def of(cls, there: Installation, access: Access) -> Self:
        settings, store, ended = there.settings, there.store, EndedJobs()
        disk = Disk(settings.home, settings.disk_low_water_mb)
        probe_key, lease = f"ready/{WorkerName.mine().folder}", timedelta(seconds=settings.lease_sec)
        return cls(
            there,
            access,
            Identities(store.tokens, there.seal, there.clock),
            LinkAccess(store.links, there.clock, FailureLimit()),
            _model_urls(settings, access),
            disk,
            Readiness(store, there.wake_up, there.blobs, there.clock, probe_key, lease, is_dead, disk.shortage),
            fleet_signals(there),
            ServedTasks(there.library, store.tasks, settings.tb2_dir),
            TryFiles(store.trials, there.blobs),
            JobListing(store.jobs, ended),
            ended,
            Broadcast(store),
            asyncio.Semaphore(settings.waiting_limit),
            asyncio.Semaphore(_SEARCHES),
        )


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _caller(request: Request) -> Caller:
    caller: Caller = request.scope["seatrial.caller"]
    return caller


async def _triage_actions(
    service: Annotated[Service, Depends(_service)], caller: Annotated[Caller, Depends(_caller)]
) -> TriageActions:
    there = service.installation
    return TriageActions(there.store, there.clock, Author(caller.name, caller.token_id))


async def _given_keys(request: Request) -> dict[str, str]:
    keys: dict[str, str] = request.scope.get("seatrial.keys", {})
    return keys


ServiceDep = Annotated[Service, Depends(_service)]
CallerDep = Annotated[Caller, Depends(_caller)]
TriageActionsDep = Annotated[TriageActions, Depends(_triage_actions)]
GivenKeys = Annotated[dict[str, str], Depends(_given_keys)]
"""Provider keys of the request, by environment name. The gates have removed them from the URL and the headers."""


async def _once(
    request: Request,
    caller: CallerDep,
    idempotency_key: Annotated[
        str | None,
        Header(
            max_length=200,
            pattern=r"^[^\x00]*$",
            description="A repeated request with the same key returns the first result. Use one key per request.",
        ),
    ] = None,
) -> Once | None:
    if not idempotency_key:
        return None
    content = hashlib.sha256(f"{request.method} {request.url.path}\n".encode())
    content.update(await request.body())
    return Once(key=f"{caller.name}:{idempotency_key}", fingerprint=content.hexdigest())


OnceDep = Annotated[Once | None, Depends(_once)]
