"""What request handlers use. Created once when the service starts; FastAPI injects it."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Annotated

from fastapi import Depends, Header, Request

from seatrial.api.gates.access import Access
from seatrial.api.gates.identity import Caller as Caller
from seatrial.api.gates.identity import Identities
from seatrial.api.live.broadcast import Broadcast
from seatrial.api.routes.job_items import JobItems
from seatrial.disk import Disk
from seatrial.engine.jobs.model_urls import ModelUrls
from seatrial.engine.readiness import Readiness
from seatrial.engine.recent import EndedJobs
from seatrial.engine.reports.listing import JobListing
from seatrial.engine.tasks.served_tasks import ServedTasks
from seatrial.engine.trials.trial_files import TryFiles
from seatrial.ports.store import Once
from seatrial.processes import WorkerName, is_dead
from seatrial.settings import Settings
from seatrial.wiring import Installation


def model_urls_of(settings: Settings, access: Access) -> ModelUrls:
    """Only a server that nobody else can call, and that has no proxy in front of it, may call any address."""
    return ModelUrls(
        settings.model_url_allowlist,
        anywhere=access is Access.LOOPBACK and not settings.allowed_hosts,
        providers=settings.model_providers,
        own_addresses=settings.provider_environment,
    )


@dataclass(frozen=True)
class Service:
    """Everything behind the API."""

    installation: Installation
    identities: Identities
    access: Access
    model_urls: ModelUrls

    @cached_property
    def disk(self) -> Disk:
        settings = self.installation.settings
        return Disk(settings.home, settings.disk_low_water_mb)

    @cached_property
    def broadcast(self) -> Broadcast:
        """One per process: it reads the store for all listeners."""
        return Broadcast(self.installation.store)

    @cached_property
    def readiness(self) -> Readiness:
        there = self.installation
        return Readiness(
            there.store,
            there.wake_up,
            there.blobs,
            there.clock,
            probe_key=f"ready/{WorkerName.mine().folder}",
            lease=timedelta(seconds=there.settings.lease_sec),
            worker_is_dead=is_dead,
            shortage=self.disk.shortage,
        )

    @cached_property
    def served_tasks(self) -> ServedTasks:
        there = self.installation
        return ServedTasks(there.library, there.store, there.settings.tb2_dir)

    @cached_property
    def waiting(self) -> asyncio.Semaphore:
        """Slots for requests that wait for a trial, given out in order of arrival."""
        return asyncio.Semaphore(self.installation.settings.waiting_limit)

    @cached_property
    def files(self) -> TryFiles:
        return TryFiles(self.installation.store, self.installation.blobs)

    @cached_property
    def ended_jobs(self) -> EndedJobs:
        return EndedJobs()

    @cached_property
    def listing(self) -> JobListing:
        """One per process: it caches the counts of ended jobs."""
        return JobListing(self.installation.store, self.ended_jobs)

    @cached_property
    def job_items(self) -> JobItems:
        """One per process, like ``listing``."""
        return JobItems(self.installation.store, self.listing, self.ended_jobs)


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _caller(request: Request) -> Caller:
    caller: Caller = request.scope["seatrial.caller"]
    return caller


async def _given_keys(request: Request) -> dict[str, str]:
    keys: dict[str, str] = request.scope.get("seatrial.keys", {})
    return keys


ServiceDep = Annotated[Service, Depends(_service)]
CallerDep = Annotated[Caller, Depends(_caller)]
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
