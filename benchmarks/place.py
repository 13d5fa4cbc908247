"""Where a benchmark run keeps its things, how large it is, and the container engine that some of it needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.engine import INSTALL, Engine, answers, stop_engine

from seatrial.sandboxes.options import SandboxOptions

ROOT = Path(__file__).resolve().parent.parent
TRIVIAL = ROOT / "samples" / "answer-file"
_ENGINE_START_SEC = 90.0


@dataclass(frozen=True)
class Place:
    """One run of the benchmarks."""

    scratch: Path
    cache: Path
    quick: bool = False
    install: str = field(default_factory=lambda: f"bench{uuid.uuid4().hex[:8]}")

    def count(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def folder(self, name: str) -> Path:
        """A new directory in the scratch space."""
        path = self.scratch / f"{name}-{uuid.uuid4().hex[:6]}"
        path.mkdir(parents=True)
        return path

    def options(self, engine: Engine | None = None) -> SandboxOptions:
        return SandboxOptions(cache=self.cache, docker_host=engine.host if engine else "")


@contextmanager
def running_engine(place: Place) -> Iterator[Engine]:
    """An engine of our own, with room for more networks than the 30 or so of a default one.

    It has a network namespace to itself: its bridges and rules meet nobody else's, and vanish with it. Images are here
    already, so it needs no way out."""
    program = shutil.which("dockerd", path="/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin")
    if program is None:
        raise RuntimeError(f"dockerd is not installed. {INSTALL}")
    folder = place.folder("engine")
    host = f"unix://{folder}/engine.sock"
    with (folder / "engine.log").open("wb") as log:
        process = subprocess.Popen(
            [
                "unshare",
                "--net",
                "sh",
                "-c",
                'ip link set lo up && exec "$@"',
                "engine",
                program,
                f"--data-root={folder}/data",
                f"--exec-root={folder}/run",
                f"--pidfile={folder}/engine.pid",
                f"--host={host}",
                "--default-address-pool=base=10.221.0.0/16,size=26",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    engine = Engine(host, process.pid, folder)
    try:
        deadline = time.monotonic() + _ENGINE_START_SEC
        while not answers(host):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"dockerd did not start:\n{(folder / 'engine.log').read_text()[-2000:]}")
            time.sleep(0.1)
        with _docker_host(host):
            yield engine
    finally:
        stop_engine(engine)


@contextmanager
def _docker_host(host: str) -> Iterator[None]:
    """Stock Harbor calls the docker client, which is told by the environment only."""
    before = os.environ.get("DOCKER_HOST")
    os.environ["DOCKER_HOST"] = host
    try:
        yield
    finally:
        del os.environ["DOCKER_HOST"]
        if before is not None:
            os.environ["DOCKER_HOST"] = before


def copy_task(place: Place, name: str, *, solve: str | None = None, settings: str = "", limit_sec: int = 120) -> Path:
    """The trivial task, changed: another solution, or lines added to its ``[environment]``."""
    task = place.folder(name)
    shutil.copytree(TRIVIAL, task, dirs_exist_ok=True)
    text = (task / "task.toml").read_text().replace("timeout_sec = 120.0", f"timeout_sec = {limit_sec}.0")
    text = text.replace("timeout_sec = 60.0", f"timeout_sec = {limit_sec}.0")
    (task / "task.toml").write_text(text.replace("[environment]\n", f"[environment]\n{settings}"))
    if solve is not None:
        (task / "solution" / "solve.sh").write_text(f"#!/bin/sh\nset -eu\n{solve}\n")
    return task
