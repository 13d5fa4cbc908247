"""The API and workers as processes of their own over one home, without sandboxes: for tests and benchmarks of what is
told live. ``python -m tests.live_processes api|worker HOME …``."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.domain.result import Result
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Phase
from seatrial.ports.runner import Order, Progress
from seatrial.settings import Settings
from seatrial.testing.fake_runner import PASS
from seatrial.wiring import Installation, assemble_worker, open_installation
from tests.waiting import LIMIT_SEC

ROOT = Path(__file__).parents[1]
TASK = ROOT / "samples" / "answer-file"


class Talker:
    """A runner that says something every so often, for so long, and passes."""

    def __init__(self, seconds: float, every_sec: float) -> None:
        self._seconds = seconds
        self._every_sec = every_sec

    async def run(self, order: Order, progress: Progress) -> Result:
        (order.work_dir / "agent").mkdir()
        for phase in Phase:
            await progress.phase(phase)
            if phase is Phase.AGENT and self._seconds:
                await self._talk(order.work_dir / "agent" / "talk.txt")
        return PASS.model_copy(update={"seconds": self._seconds})

    async def _talk(self, path: Path) -> None:
        for number in range(round(self._seconds / self._every_sec)):
            with path.open("a") as file:
                file.write(f"{number} {time.time()}\n")
            await asyncio.sleep(self._every_sec)


def settings_of(home: Path) -> Settings:
    return Settings(home=home, auth="none", heartbeat_sec=1, lease_sec=60, disk_low_water_mb=0)


async def submit(installation: Installation, trials: int, *, hold: bool = False) -> Job:
    """``hold`` leaves the trials to be released later."""
    (task,) = await installation.library.add(TASK)
    refs = (TaskRef(name=task.name, digest=task.digest),)
    spec = JobSpec(tasks=refs, agents=(AgentSpec(name="oracle"),), attempts=trials)
    if hold:
        return await installation.submission.prepare(spec)
    return await installation.submission.submit(spec)


@contextmanager
def api_process(home: Path) -> Iterator[tuple[str, int]]:
    """Its address and its process."""
    with _process("api", home) as process:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        assert address, "the API did not start"
        yield address, process.pid


@contextmanager
def worker_process(home: Path, seconds: float, capacity: int = 4, every_sec: float = 0.05) -> Iterator[int]:
    with _process("worker", home, str(seconds), str(capacity), str(every_sec)) as process:
        assert process.stdout is not None
        assert process.stdout.readline(), "the worker did not start"
        yield process.pid


@contextmanager
def _process(kind: str, home: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.live_processes", kind, str(home), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(LIMIT_SEC)
            except subprocess.TimeoutExpired:
                process.kill()


async def _serve(home: Path) -> None:
    from seatrial.api.app import create_app
    from seatrial.api.serve import ApiServer, address_of, listen

    listener = listen("127.0.0.1", 0)
    async with ApiServer(create_app(settings_of(home)), listener, keep_alive_sec=65):
        gc.freeze()  # as ``seatrial up`` does: what is loaded now stays
        sys.stdout.write(f"{address_of(listener)}\n")
        sys.stdout.flush()
        await _told_to_stop()


async def _work(home: Path, talker: Talker, capacity: int) -> None:
    async with open_installation(settings_of(home)) as installation:
        worker = assemble_worker(installation, talker, capacity)
        working = asyncio.create_task(worker.run())
        sys.stdout.write("working\n")
        sys.stdout.flush()
        await _told_to_stop()
        worker.leave()
        await working


async def _told_to_stop() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("api", "worker"))
    parser.add_argument("home", type=Path)
    parser.add_argument("seconds", type=float, nargs="?", default=0.0)
    parser.add_argument("capacity", type=int, nargs="?", default=4)
    parser.add_argument("every_sec", type=float, nargs="?", default=0.05)
    given = parser.parse_args()
    talker = Talker(given.seconds, given.every_sec)
    asyncio.run(_serve(given.home) if given.kind == "api" else _work(given.home, talker, given.capacity))


if __name__ == "__main__":
    main()
