"""Scripted terminus-2 trials, 60 in flight: what an agent's trial costs when the model costs nothing.

Seven turns each, through the real worker, store and blobs; one worker process, as ``seatrial up`` starts. The peer is
stock Harbor with the same agent, task and scripted model, on its Docker environment with an image that has our tmux and
recorder already, so that it installs nothing. It takes seconds for each trial, so it runs a few.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

from benchmarks.homes import fresh_home, work_off
from benchmarks.place import ROOT, Place, running_engine
from benchmarks.row import Row
from benchmarks.trials import DOCKER, our_subject, run_trial
from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.domain.task import TaskRef
from seatrial.sandboxes.terminal.terminal import KIT_DIR, TerminalKit
from seatrial.scripted_models.server import ScriptedModels
from seatrial.wiring import Installation, make_worker

TASK = ROOT / "samples" / "read-the-screen"
SCRIPT = "solve-read-the-screen"
TARGET = 4.0
_MOST_PROCESSOR_SEC = 0.5
_TOOLS = f"COPY kit {KIT_DIR}\nRUN ln -s {KIT_DIR}/bin/tmux {KIT_DIR}/bin/asciinema /usr/local/bin/\n"


async def measure(place: Place) -> list[Row]:
    count = place.count(60, 6)
    async with fresh_home(place) as installation:
        await _run(installation, 2)
        before = _busy_sec()
        seconds = await _run(installation, count)
        processor = (_busy_sec() - before) / count
    rate = count / seconds
    peer, ratio = await _beside_stock(place, rate)
    what = f"scripted terminus-2 trials, {count} in flight"
    return [
        Row(f"{what}, trials per second", f"{rate:.2f}/s", f">= {TARGET:g}/s", rate >= TARGET, peer, ratio),
        Row(
            f"{what}, processor time of the whole machine for each",
            f"{processor:.2f} s",
            f"<= {_MOST_PROCESSOR_SEC:g} s",
            processor <= _MOST_PROCESSOR_SEC,
        ),
    ]


async def _run(installation: Installation, count: int) -> float:
    job = await _submitted(installation, count)
    return await work_off(installation, make_worker(installation, count), [job])


async def _submitted(installation: Installation, count: int) -> Job:
    tasks = await installation.library.add(TASK)
    refs = tuple(TaskRef(name=one.name, digest=one.digest) for one in tasks)
    agent = AgentSpec(name="terminus-2", model=f"scripted/{SCRIPT}")
    return await installation.submission.submit(JobSpec(tasks=refs, agents=(agent,), attempts=count, sandbox="oci"))


def _busy_sec() -> float:
    """Of all processors since the machine started, without idle and waiting time."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


async def _beside_stock(place: Place, rate: float) -> tuple[str, float | None]:
    at_once = place.count(5, 1)
    try:
        stock = at_once / await _stock_seconds(place, at_once)
    except Exception as problem:
        return f"stock Harbor could not run here: {str(problem)[:100]}", None
    return f"stock Harbor {stock:.3f}/s, {at_once} in flight", rate / stock


async def _stock_seconds(place: Place, at_once: int) -> float:
    task = place.folder("with-tools")
    shutil.copytree(TASK, task, dirs_exist_ok=True)
    dockerfile = task / "environment" / "Dockerfile"
    shutil.copytree(TerminalKit.prepare(place.cache).directory, task / "environment" / "kit", symlinks=True)
    dockerfile.write_text(dockerfile.read_text().replace("WORKDIR", f"{_TOOLS}WORKDIR"))
    with running_engine(place) as engine:
        ours = our_subject(place, "docker", DOCKER, task, place.options(engine))
        image = (await run_trial(place, ours)).agent_environment.facts.image
        settings = (task / "task.toml").read_text()
        (task / "task.toml").write_text(
            settings.replace("[environment]\n", f'[environment]\ndocker_image = "{image}"\n')
        )
        async with ScriptedModels() as models:
            with _key():
                await _stock_trial(place, task, models.base_url)
                started = time.perf_counter()
                await asyncio.gather(*(_stock_trial(place, task, models.base_url) for _ in range(at_once)))
                return time.perf_counter() - started


async def _stock_trial(place: Place, task: Path, base_url: str) -> None:
    trial = await Trial.create(
        TrialConfig(
            task=TaskConfig(path=task),
            trials_dir=place.scratch / "trials",
            trial_name=f"bench-{uuid.uuid4().hex[:10]}",
            agent=AgentConfig(name="terminus-2", model_name=f"openai/{SCRIPT}", kwargs={"api_base": base_url}),
            environment=EnvironmentConfig(type="docker"),
        )
    )
    result = await trial.run()
    rewards = result.verifier_result.rewards if result.verifier_result else None
    if rewards != {"reward": 1.0}:
        raise RuntimeError(f"a trial did not pass: {rewards} {result.exception_info}")


@contextmanager
def _key() -> Iterator[None]:
    """Any key will do for the scripted model. Stock Harbor reads it from the environment."""
    before = os.environ.get("OPENAI_API_KEY")
    os.environ["OPENAI_API_KEY"] = "scripted"
    try:
        yield
    finally:
        del os.environ["OPENAI_API_KEY"]
        if before is not None:
            os.environ["OPENAI_API_KEY"] = before
