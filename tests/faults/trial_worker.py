"""A whole worker without sandboxes, as a process of its own, to be killed, frozen and cut off.

``FakeWorker`` starts ``python -m tests.faults.trial_worker``. Each try writes a line into a diary when it begins, waits
for a gate or for some time, and passes. The line stands for a model call, which the result counts.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from seatrial.domain.result import Result, Usage
from seatrial.domain.trial import Phase
from seatrial.ports.runner import Order, Progress
from seatrial.settings import Settings
from seatrial.testing.fake_runner import PASS
from seatrial.wiring import assemble_worker, clean_leftovers, open_installation

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Setup:
    """Where a worker works, and how."""

    home: str
    diary: str
    database_url: str = ""
    broker_url: str = ""
    blobs_url: str = ""
    capacity: int = 4
    lease_sec: float = 6.0
    heartbeat_sec: float = 1.0
    reap_sec: float = 1.0
    gate: str = ""
    """A file; tries wait until it is there. ``{job}`` in its name is the number of the job."""
    seconds: float = 0.0
    secret_key: str = ""
    disk_low_water_mb: int = 0

    def settings(self) -> Settings:
        own = {"gate", "seconds", "diary", "capacity"}
        given = {name: value for name, value in asdict(self).items() if name not in own}
        cache = Path(self.home) / "cache"
        return Settings(**given, cache=cache, docker_host="unix:///nowhere", auth="none")


def lines_of(diary: str) -> list[str]:
    """One for each try that began."""
    return Path(diary).read_text().splitlines() if Path(diary).exists() else []


class DiaryRunner:
    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def run(self, order: Order, progress: Progress) -> Result:
        trial = order.trial
        with open(self._setup.diary, "a") as diary:
            diary.write(f"{trial.id} {trial.try_number} {os.getpid()} {len(order.secrets)}\n")
        await progress.phase(Phase.AGENT)
        (order.work_dir / "agent").mkdir()
        (order.work_dir / "agent" / "log.txt").write_text(f"trial {trial.id}, try {trial.try_number}\n")
        if gate := self._setup.gate.format(job=trial.job_id):
            while not os.path.exists(gate):
                await asyncio.sleep(0.05)
        await asyncio.sleep(self._setup.seconds)
        await progress.phase(Phase.VERIFY)
        return PASS.model_copy(update={"usage": Usage(model_calls=1)})


@dataclass
class FakeWorker:
    process: subprocess.Popen[bytes]
    log: Path
    group: bool = field(default=False)

    @classmethod
    def start(cls, setup: Setup, around: Sequence[str] = ()) -> FakeWorker:
        """``around`` is a command to run it in, such as ``unshare``. Returns once it works."""
        worker = cls.launch(setup, around)
        worker.until_ready()
        return worker

    @classmethod
    def launch(cls, setup: Setup, around: Sequence[str] = ()) -> FakeWorker:
        Path(setup.home).mkdir(parents=True, exist_ok=True)
        command = [*around, sys.executable, "-m", "tests.faults.trial_worker", json.dumps(asdict(setup))]
        handle, name = tempfile.mkstemp(dir=setup.home, suffix=".log")
        strange = ("SEATRIAL_", "OPENAI_", "OPENROUTER_")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(strange)}
        with os.fdopen(handle, "wb") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env={**environment, "PYTHONPATH": str(ROOT)}, stdout=log, stderr=log
            )
        return cls(process, Path(name))

    def until_ready(self) -> None:
        deadline = time.monotonic() + 120
        while "working" not in self.log.read_text():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        if self.alive:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait(60)


async def _work(setup: Setup) -> None:
    async with open_installation(setup.settings(), for_worker=True) as installation:
        worker = assemble_worker(
            installation, DiaryRunner(setup), setup.capacity, clean=lambda: clean_leftovers(installation)
        )
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        working = asyncio.create_task(worker.run())
        print("working", flush=True)
        await stop.wait()
        worker.leave()
        await working


def main() -> None:
    import logging

    logging.basicConfig(level=logging.INFO)
    given: dict[str, Any] = json.loads(sys.argv[1])
    asyncio.run(_work(Setup(**given)))


if __name__ == "__main__":
    main()
