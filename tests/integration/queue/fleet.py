"""An installation with a broker and a worker in this process. Its trials wait until a test opens the gate."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.domain.result import Result
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Phase
from seatrial.ports.runner import Order, Progress
from seatrial.settings import Settings
from seatrial.testing.fake_runner import PASS
from seatrial.wiring import Installation, assemble_worker, open_installation
from tests.command_line import SAMPLES
from tests.waiting import eventually


@dataclass
class Gate:
    """A runner whose trials wait until ``opened`` is set."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    began: list[int] = field(default_factory=list)

    async def run(self, order: Order, progress: Progress) -> Result:
        self.began.append(order.trial.id)
        await progress.phase(Phase.AGENT)
        await self.opened.wait()
        return PASS


def settings_of(home: Path, broker_url: str = "", **more: object) -> Settings:
    pace = {"heartbeat_sec": 0.2, "lease_sec": 10.0, "reap_sec": 0.5, "disk_low_water_mb": 0}
    given = {"home": home, "cache": home / "cache", "broker_url": broker_url, "docker_host": "unix:///nowhere"}
    return Settings(_env_file=None, **{**pace, **given, **more})  # type: ignore[arg-type]


@asynccontextmanager
async def fleet(settings: Settings, gate: Gate, capacity: int = 4) -> AsyncIterator[Installation]:
    async with open_installation(settings) as installation:
        work = asyncio.create_task(assemble_worker(installation, gate, capacity).run())
        try:
            yield installation
        finally:
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work


async def submit(installation: Installation, attempts: int, keys: Mapping[str, str] | None = None) -> Job:
    (task,) = await installation.library.add(SAMPLES / "answer-file")
    ref = TaskRef(name=task.name, digest=task.digest)
    spec = JobSpec(tasks=(ref,), agents=(AgentSpec(name="oracle"),), attempts=attempts)
    return await installation.submission.submit(spec, keys or {})


async def ended(installation: Installation, job: Job) -> None:
    async def has_ended() -> bool:
        return (await installation.store.jobs.get(job.id)).ended_at is not None

    await eventually(has_ended, f"job {job.id} ended")
