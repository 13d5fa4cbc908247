"""The API in this process, with a home of its own and workers that need no sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Response

from seatrial.api.app import create_app
from seatrial.domain.job import AgentSpec, Job, JobSpec, RetryPolicy, plan
from seatrial.domain.task import TaskRef
from seatrial.ports.runner import Runner
from seatrial.settings import Settings
from seatrial.wiring import Installation, assemble_worker
from tests.task_files import write_task
from tests.waiting import LIMIT_SEC


@dataclass(frozen=True)
class Api:
    app: FastAPI
    client: AsyncClient
    place: Path

    @property
    def installation(self) -> Installation:
        found: Installation = self.app.state.service.installation
        return found

    async def get(self, path: str, **headers: str) -> Response:
        return await self.client.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    async def submit(self, attempts: int) -> Job:
        tasks = await self.installation.library.add(write_task(self.place, "count-me"))
        spec = JobSpec(
            tasks=tuple(TaskRef(name=task.name, digest=task.digest) for task in tasks),
            agents=(AgentSpec(name="oracle"),),
            attempts=attempts,
            retry=RetryPolicy(max_attempts=2, backoff_sec=0),
        )
        return await self.installation.store.jobs.create(spec, tuple(plan(spec)), self.installation.clock())

    @asynccontextmanager
    async def worker(self, runner: Runner, capacity: int = 4) -> AsyncIterator[None]:
        worker = assemble_worker(self.installation, runner, capacity)
        working = asyncio.create_task(worker.run())
        try:
            async with asyncio.timeout(LIMIT_SEC):
                while not await self.installation.store.workers.all():
                    await asyncio.sleep(0.01)
            yield
        finally:
            worker.leave()
            await working

    async def work_off(self, job: Job, runner: Runner) -> None:
        async with self.worker(runner), asyncio.timeout(LIMIT_SEC):
            while (counts := (await self.installation.store.jobs.counts([job.id]))[job.id]).queued + counts.running:
                await asyncio.sleep(0.02)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    settings = Settings(home=tmp_path / "home", cache=tmp_path / "cache", heartbeat_sec=0.1, reap_sec=1.0)
    async with opened(settings, tmp_path) as running:
        yield running


@asynccontextmanager
async def opened(settings: Settings, place: Path) -> AsyncIterator[Api]:
    app = create_app(settings)
    transport = ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client,
    ):
        yield Api(app, client, place)
