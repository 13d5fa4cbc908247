"""Flower, really run: its API tells which trial runs where, and since when."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from seatrial.testing.lasting_port import lasting_port
from seatrial.testing.redis import RedisServer
from tests.integration.queue.fleet import Gate, ended, fleet, settings_of, submit
from tests.waiting import eventually


@contextmanager
def flower(server: RedisServer, log: Path) -> Iterator[str]:
    port = lasting_port()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(log.parent),
        "SEATRIAL_BROKER_URL": server.url,
        "FLOWER_UNAUTHENTICATED_API": "true",
    }
    command = [sys.executable, "-m", "celery", "-A", "seatrial.celery", "flower", "--address=127.0.0.1"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, f"--port={port}"], env=environment, cwd=log.parent, stdout=out, stderr=out
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.long
async def test_flower_tells_the_truth(tmp_path: Path, redis_server: RedisServer) -> None:
    gate, log = Gate(), tmp_path / "flower.log"
    async with (
        fleet(settings_of(tmp_path / "home", redis_server.url), gate) as installation,
        httpx.AsyncClient(timeout=60, trust_env=False) as http,
    ):
        first = await submit(installation, 2)
        await eventually(lambda: len(gate.began) == 2, "both run")
        with flower(redis_server, log) as address:

            async def asked(path: str) -> Any:
                try:
                    answer = await http.get(f"{address}{path}")
                except httpx.TransportError:
                    return None
                return answer.json() if answer.status_code == 200 else None

            async def active() -> set[int]:
                """Flower asks for tasks only of one worker at a time."""
                (node,) = await asked("/api/workers?refresh=1") or [""]
                workers = await asked(f"/api/workers?refresh=1&workername={node}") or {}
                return {task["kwargs"]["trial"] for one in workers.values() for task in one.get("active") or ()}

            async def sees_both() -> bool:
                return await active() == set(gate.began)

            await eventually(sees_both, f"Flower shows the active trials: {log.read_text()[-2000:]}")
            gate.opened.set()
            await ended(installation, first)

            async def counts_ended_ones() -> bool:
                """Flower asks for events every few seconds, and knows trials that began after that."""
                job = await submit(installation, 1)
                await ended(installation, job)
                tasks = (await asked("/api/tasks?taskname=seatrial.trial&state=SUCCESS") or {}).values()
                return any("'job': " in task["kwargs"] and task["worker"] in node for task in tasks)

            (node,) = await asked("/api/workers")
            await eventually(counts_ended_ones, "Flower counts those that ended")
            assert await active() == set()
