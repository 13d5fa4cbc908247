"""Starts a service for a load test in a folder of its own, and removes all of it afterwards.

``embedded`` is ``seatrial up`` as it is: SQLite, local files, a worker beside the API. ``fleet`` is the API alone on
PostgreSQL and Redis with workers of their own beside it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from seatrial.testing.postgres import PostgresServer
from seatrial.testing.redis import RedisServer

KINDS = ("embedded", "fleet")
_PROGRAM = Path(sys.executable).with_name("seatrial")
_START_SEC = 120.0
_STOP_SEC = 60.0


@dataclass(frozen=True, slots=True)
class Target:
    """A running service, and a token for it if it asks for one."""

    url: str
    token: str = ""


@contextmanager
def started(kind: str, cache: Path, workers: int = 0, concurrency: int = 20) -> Iterator[Target]:
    """It asks for tokens, so that every user of the test has one."""
    with ExitStack() as stack:
        place = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="seatrial-load-", ignore_cleanup_errors=True))
        )
        environment = _environment(place, cache)
        if kind == "fleet":
            environment |= stack.enter_context(_servers())
        made = subprocess.run(
            [_PROGRAM, "token", "create", "load", "--role", "admin", "--json"],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        inside = (workers or 1) if kind == "embedded" else 0
        api = stack.enter_context(
            _process(place, environment, "up", "--port", "0", "--workers", str(inside), "-n", str(concurrency))
        )
        for _ in range((workers or 2) if kind == "fleet" else 0):
            worker = stack.enter_context(_process(place, environment, "worker", "-n", str(concurrency)))
            worker.says(r"Worker ready")
        address = api.says(r"is up: (http://\S+)")
        _until_ready(address)
        yield Target(address, json.loads(made.stdout)["secret"])


def _until_ready(address: str) -> None:
    """A worker has told the store that it is there."""
    deadline = time.monotonic() + _START_SEC
    while time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(f"{address}/ready", timeout=10) as answer:
            if answer.status == 200:
                return
        time.sleep(0.1)
    raise RuntimeError("The service did not become ready.")


@contextmanager
def _servers() -> Iterator[dict[str, str]]:
    with PostgresServer(shared=True) as database, RedisServer() as broker:
        url = asyncio.run(database.create_database("load"))
        yield {"SEATRIAL_DATABASE_URL": url, "SEATRIAL_BROKER_URL": broker.url}


def _environment(place: Path, cache: Path) -> dict[str, str]:
    foreign = re.compile(r"SEATRIAL_.*|DATABASE_URL|REDIS_URL|CELERY_.*|.*_API_KEY")
    kept = {name: value for name, value in os.environ.items() if not foreign.fullmatch(name)}
    own = {"SEATRIAL_HOME": str(place / "home"), "SEATRIAL_CACHE": str(cache), "SEATRIAL_AUTH": "token"}
    return {**kept, **own, "SEATRIAL_DISK_LOW_WATER_MB": "64"}


@dataclass(frozen=True, slots=True)
class _Process:
    running: subprocess.Popen[bytes]
    log: Path

    def says(self, pattern: str) -> str:
        """Waits until it has written this; returns the group, or all of it."""
        deadline = time.monotonic() + _START_SEC
        while not (found := re.search(pattern, self.log.read_text())):
            if self.running.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"It did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.1)
        return found[1] if found.groups() else found[0]


@contextmanager
def _process(place: Path, environment: dict[str, str], *command: str) -> Iterator[_Process]:
    handle, name = tempfile.mkstemp(dir=place, suffix=".log")
    with os.fdopen(handle, "wb") as log:
        running = subprocess.Popen(
            [_PROGRAM, *command], env=environment, cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield _Process(running, Path(name))
    finally:
        for _ in range(2):  # the second one gives back what still runs
            with suppress(subprocess.TimeoutExpired):
                running.send_signal(signal.SIGTERM)
                running.wait(_STOP_SEC)
                break
        else:
            running.kill()
            running.wait()
