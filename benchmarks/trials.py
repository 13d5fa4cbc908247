"""Oracle trials through Harbor's bare ``Trial``, in this process: the same harness for every sandbox."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

from benchmarks.place import Place
from seatrial.sandboxes.options import SandboxOptions

OCI = "seatrial.sandboxes.oci:OciEnvironment"
DOCKER = "seatrial.sandboxes.docker:DockerEnvironment"


@dataclass(frozen=True)
class Subject:
    """A sandbox and the task that it is measured with."""

    name: str
    task: Path
    environment: EnvironmentConfig


def our_subject(place: Place, name: str, import_path: str, task: Path, options: SandboxOptions) -> Subject:
    kwargs: dict[str, Any] = {
        "options": options.model_dump(mode="json"),
        "owner": {"install": place.install, "trial": 1, "try_number": 1},
    }
    return Subject(name, task, EnvironmentConfig(import_path=import_path, kwargs=kwargs))


async def run_trial(place: Place, subject: Subject) -> Trial:
    """One trial; it must pass, or its time would mean nothing."""
    trial = await Trial.create(
        TrialConfig(
            task=TaskConfig(path=subject.task),
            trials_dir=place.scratch / "trials",
            trial_name=f"bench-{uuid.uuid4().hex[:10]}",
            agent=AgentConfig(name="oracle"),
            environment=subject.environment,
        )
    )
    result = await trial.run()
    rewards = result.verifier_result.rewards if result.verifier_result else None
    if rewards != {"reward": 1.0}:
        raise RuntimeError(f"A trial on {subject.name} did not pass: {rewards} {result.exception_info}")
    return trial


async def seconds_for(place: Place, subject: Subject, count: int, at_once: int) -> float:
    """Wall time of ``count`` trials, ``at_once`` in flight."""
    turns = asyncio.Semaphore(at_once)

    async def one() -> None:
        async with turns:
            await run_trial(place, subject)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(one())
    return time.perf_counter() - started
