"""A real server on loopback with a worker beside it: real HTTP, real store, and the runner that a test brings."""

from __future__ import annotations

import asyncio
import contextlib
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx

from seatrial.adapters.runner_harbor.equip import ModelAccess
from seatrial.adapters.runner_harbor.runner import HarborRunner
from seatrial.api.app import create_app
from seatrial.api.serve import ApiServer, address_of, listen
from seatrial.ports.runner import Runner
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.selection import SandboxSelection
from seatrial.settings import Settings
from seatrial.wiring import Installation, assemble_worker
from tests.command_line import SAMPLES
from tests.waiting import LIMIT_SEC

TASK_TOML = """schema_version = "1.4"
[task]
name = "tests/{name}"
description = "Says hello."
[environment]
cpus = 1
memory_mb = 512
"""


@dataclass(frozen=True)
class Server:
    """What a test talks to, and the installation behind it for a look at what happened."""

    http: httpx.AsyncClient
    installation: Installation
    places: asyncio.Semaphore
    """For callers who wait for the end of their trial."""

    async def upload(self, archive: bytes | None = None, status: int = 200, **fields: Any) -> dict[str, Any]:
        """As TBench Runner's page does it: the archive as a form, everything else in the query."""
        wanted = {"name": "hello", "agent": "oracle", **fields}
        files = {"file": ("hello.zip", archive or task_zip(), "application/zip")}
        answer = await self.http.post("/api/tasks", params=wanted, files=files)
        assert answer.status_code == status, answer.text
        return dict(answer.json())

    async def post(self, path: str, status: int = 200, **given: Any) -> dict[str, Any]:
        answer = await self.http.post(path, **given)
        assert answer.status_code == status, answer.text
        return dict(answer.json())

    async def get(self, path: str, expect: int = 200, **query: Any) -> Any:
        answer = await self.http.get(path, params=query)
        assert answer.status_code == expect, answer.text
        return answer.json()

    async def ended(self, task_id: int, seconds: float = LIMIT_SEC) -> dict[str, Any]:
        """Polls as the load scripts do."""
        async with asyncio.timeout(seconds):
            while (task := await self.get(f"/api/tasks/{task_id}"))["status"] in ("pending", "running"):
                await asyncio.sleep(0.05)
        return dict(task)


@asynccontextmanager
async def serving(home: Path, runner: Runner | None, capacity: int = 8, **changes: Any) -> AsyncIterator[Server]:
    """Without a runner there is no worker: what is queued stays queued."""
    settings = Settings(_env_file=None, home=home, **changes)
    app = create_app(settings)
    listener = listen("127.0.0.1", 0)
    address = address_of(listener)
    # Some answers come when a whole trial has ended.
    client = httpx.AsyncClient(base_url=address, timeout=2 * LIMIT_SEC, trust_env=False)
    async with ApiServer(app, listener, 5), client as http:
        installation: Installation = app.state.service.installation
        async with _working(installation, runner, capacity):
            yield Server(http, installation, app.state.service.waiting)


@asynccontextmanager
async def _working(installation: Installation, runner: Runner | None, capacity: int) -> AsyncIterator[None]:
    if runner is None:
        yield
        return
    work = asyncio.create_task(assemble_worker(installation, runner, capacity).run())
    try:
        yield
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


@asynccontextmanager
async def real_runner(cache: Path, install: str = "http", patience_sec: float = 600) -> AsyncIterator[HarborRunner]:
    """Harbor in real sandboxes."""
    options = SandboxOptions(cache=cache)
    async with ModelAccess(patience_sec) as models:
        yield HarborRunner(options, install, SandboxSelection(options), models)


def task_zip(name: str = "hello", **files: str) -> bytes:
    """A small valid task; a file given as an empty text is left out."""
    content = {
        "task.toml": TASK_TOML.format(name=name),
        "instruction.md": "Write hello into /app/hello.\n",
        "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n",
        "solution/solve.sh": "#!/bin/bash\necho hello > /app/hello\n",
        "tests/test.sh": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
        **{path.replace("__", "/").replace("_dot_", "."): text for path, text in files.items()},
    }
    return zipped({f"{name}/{path}": text for path, text in content.items() if text})


def zipped(files: dict[str, str]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return buffer.getvalue()


def write_task(root: Path, name: str, instruction: str = "Write hello into /app/hello.\n") -> Path:
    """The same task as a directory."""
    with zipfile.ZipFile(BytesIO(task_zip(name, instruction_dot_md=instruction))) as archive:
        archive.extractall(root)
    return root / name


def sample(name: str) -> Path:
    return SAMPLES / name
