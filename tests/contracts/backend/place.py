"""A backend of the command line together with the installation behind it, whose trials a fake runner works off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from seatrial.api.app import create_app
from seatrial.cli.backend.backend import Backend
from seatrial.cli.backend.local import LocalBackend, LocalRuns
from seatrial.cli.backend.remote import RemoteBackend
from seatrial.cli.backend.request import AgentEntry, RunRequest
from seatrial.client import AsyncClient
from seatrial.domain.job import Job
from seatrial.domain.trial import Outcome
from seatrial.ports.runner import Runner
from seatrial.ports.store import TrialFilter
from seatrial.settings import Settings
from seatrial.testing.fake_runner import FakeRunner
from seatrial.wiring import Installation, assemble_worker, open_installation
from tests.task_files import write_task
from tests.waiting import LIMIT_SEC

_URL = "http://127.0.0.1:8000"


class CountingTransport(httpx.AsyncBaseTransport):
    """Notes the path of every request on its way to the application."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner
        self.paths: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.paths.append(request.url.path)
        return await self._inner.handle_async_request(request)


@dataclass(frozen=True)
class Place:
    backend: Backend
    here: Installation
    folder: Path
    requests: list[str]
    """Paths that a remote backend asked for."""

    def request(self, *tasks: str, agent: str = "oracle", model: str | None = None, attempts: int = 1) -> RunRequest:
        """A run of fresh tasks with these names."""
        paths = tuple(write_task(self.folder / "sources", name) for name in tasks)
        return RunRequest(paths=paths, agents=(AgentEntry(name=agent, model=model),), attempts=attempts)

    async def submit(self, *tasks: str, attempts: int = 1) -> Job:
        return await self.backend.runs.submit(self.request(*tasks, attempts=attempts))

    async def outcomes(self, job: Job) -> list[Outcome | None]:
        return [row.trial.outcome async for row in self.here.store.trials.each(TrialFilter(job_id=job.id))]

    async def states(self, job: Job) -> list[str]:
        return [row.trial.state.value async for row in self.here.store.trials.each(TrialFilter(job_id=job.id))]

    async def work_off(self, job: Job, runner: Runner | None = None) -> None:
        """Until every trial of the job has ended."""
        async with self.working(runner), asyncio.timeout(LIMIT_SEC):
            while (await self.here.store.jobs.get(job.id)).ended_at is None:
                await asyncio.sleep(0.01)

    async def follow_to_end(self, job: Job, runner: Runner) -> int:
        """The exit status of a run that prints JSON."""
        if isinstance(self.backend, LocalBackend):
            runs = LocalRuns(self.here, lambda capacity, job_id: assemble_worker(self.here, runner, capacity, job_id))
            return await runs.follow_to_end(job, as_json=True)
        async with self.working(runner):
            return await self.backend.runs.follow_to_end(job, as_json=True)

    @asynccontextmanager
    async def working(self, runner: Runner | None = None) -> AsyncIterator[None]:
        worker = assemble_worker(self.here, runner or FakeRunner(), capacity=8)
        working = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            worker.leave()
            await working


def settings_in(folder: Path, **more: object) -> Settings:
    return Settings(home=folder / "home", cache=folder / "cache", sandbox="oci", disk_low_water_mb=0, **more)  # type: ignore[arg-type]


@asynccontextmanager
async def local_place(folder: Path) -> AsyncIterator[Place]:
    async with open_installation(settings_in(folder)) as here:
        yield Place(LocalBackend.at(here), here, folder, [])


@asynccontextmanager
async def remote_place(folder: Path) -> AsyncIterator[Place]:
    settings = settings_in(folder)
    app = create_app(settings)
    transport = CountingTransport(httpx.ASGITransport(app, client=("127.0.0.1", 40000)))
    async with app.router.lifespan_context(app), AsyncClient(_URL, transport=transport) as client:
        backend = RemoteBackend.at(client, settings)
        yield Place(backend, app.state.service.installation, folder, transport.paths)
