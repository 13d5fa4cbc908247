"""The whole application in this process, with a store of its own, asked over HTTP. Trials are worked off by a fake
runner when a test says so."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from seatrial.api.app import create_app
from seatrial.ports.runner import Runner
from seatrial.settings import Settings
from seatrial.testing.fake_runner import FakeRunner
from seatrial.wiring import Installation, assemble_worker
from tests.task_files import write_task
from tests.waiting import LIMIT_SEC


@dataclass(frozen=True)
class Api:
    app: FastAPI
    http: httpx.AsyncClient
    folder: Path

    @property
    def installation(self) -> Installation:
        installation: Installation = self.app.state.service.installation
        return installation

    async def get(self, path: str, status: int = 200, **options: Any) -> Any:
        return (await self.ask("GET", path, status, **options)).json()

    async def post(self, path: str, content: Any = None, status: int = 200, **options: Any) -> Any:
        return (await self.ask("POST", path, status, json=content, **options)).json()

    async def ask(self, method: str, path: str, status: int, **options: Any) -> httpx.Response:
        answer = await self.http.request(method, f"/api/v1{path}", **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text[:2000]}"
        return answer

    async def add_tasks(self, *names: str, **options: Any) -> list[str]:
        """Uploads one archive for each; their digests."""
        files = [("files", (f"{name}.zip", archive_of(self.folder, name, **options))) for name in names]
        taken = await self.post("/tasks", status=201, files=files)
        assert [item["error"] for item in taken["items"]] == [None] * len(names)
        return [item["tasks"][0]["digest"] for item in taken["items"]]

    async def work_off(self, runner: Runner | None = None, capacity: int = 8) -> None:
        """Until nothing is queued or running."""
        worker = assemble_worker(self.installation, runner or FakeRunner(), capacity)
        working = asyncio.create_task(worker.run())
        async with asyncio.timeout(LIMIT_SEC):
            while True:
                backlog = await self.installation.store.totals.backlog(self.installation.clock())
                if not backlog.queued and not backlog.running:
                    break
                await asyncio.sleep(0.02)
        worker.leave()
        await working


@asynccontextmanager
async def serving(folder: Path, database_url: str = "", **settings: Any) -> AsyncIterator[Api]:
    """``database_url`` empty: SQLite in the folder."""
    app = create_app(
        Settings(home=folder / "home", cache=folder / "cache", database_url=database_url, sandbox="oci", **settings)
    )
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", timeout=60) as http,
    ):
        yield Api(app, http, folder)


def archive_of(folder: Path, name: str, **options: Any) -> bytes:
    return zipped(write_task(folder / "sources", name, **options))


def zipped(root: Path) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(root.rglob("*")):
            archive.write(path, f"{root.name}/{path.relative_to(root)}")
    return content.getvalue()
