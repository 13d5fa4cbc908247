"""FAULTS 8 and 9: the container engine dies under a trial. The trial becomes an error, never a failed attempt."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from harbor.models.trial.config import AgentConfig, TaskConfig, TrialConfig
from harbor.models.trial.config import EnvironmentConfig as TrialEnvironment
from harbor.models.trial.result import TrialResult
from harbor.trial.trial import Trial

from seatrial.sandboxes.docker import client as engine_client
from seatrial.sandboxes.docker.leftovers import Leftovers
from seatrial.sandboxes.options import SandboxOptions
from tests.command_line import ROOT, CommandLine
from tests.engine import Engine, kill_engine, start_engine, stop_engine
from tests.engine_fixture import image_cache
from tests.faults.configurations import Configuration
from tests.faults.test_workers import PASSED, WorkerSupervisor
from tests.host_processes import processes_with
from tests.waiting import eventually, until

__all__ = ["image_cache"]

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

_TASK = """schema_version = "1.4"
[task]
name = "tests/engine-restart"
[agent]
timeout_sec = 120.0
[verifier]
timeout_sec = 120.0
[environment]
cpus = 1
memory_mb = 256
network_mode = "no-network"
"""


@pytest.fixture(scope="module")
def engine_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """For an engine of these tests alone, which they may kill."""
    directory = tmp_path_factory.mktemp("engine")
    yield directory
    pid_file = directory / "engine.pid"
    if pid_file.exists():
        stop_engine(Engine(f"unix://{directory}/engine.sock", int(pid_file.read_text()), directory))


@pytest.fixture
def engine(engine_dir: Path) -> Engine:
    """Running, whatever the test before did to it."""
    pid_file = engine_dir / "engine.pid"
    if pid_file.exists():
        return Engine(f"unix://{engine_dir}/engine.sock", int(pid_file.read_text()), engine_dir)
    return start_engine(engine_dir, apart=True)


def _task(directory: Path, solve: str, test: str) -> Path:
    root = directory / f"task-{uuid.uuid4().hex[:8]}"
    for name, text in {
        "task.toml": _TASK,
        "instruction.md": "Do it.\n",
        "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n",
        "solution/solve.sh": f"#!/bin/bash\n{solve}\n",
        "tests/test.sh": f"#!/bin/bash\n{test}\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


async def _trial(engine: Engine, task: Path, cache: Path, install: str) -> Trial:
    options = SandboxOptions(cache=cache, docker_host=engine.host).model_dump(mode="json")
    return await Trial.create(
        TrialConfig(
            task=TaskConfig(path=task),
            trials_dir=task.parent / "trials",
            trial_name=f"trial-{uuid.uuid4().hex[:8]}",
            agent=AgentConfig(name="oracle"),
            environment=TrialEnvironment(
                import_path="seatrial.sandboxes.docker:DockerEnvironment",
                kwargs={"options": options, "owner": {"install": install, "trial": 1, "try_number": 1}},
            ),
        )
    )


def _reward(result: TrialResult) -> object:
    return result.verifier_result.rewards if result.verifier_result else None


@pytest.mark.parametrize("phase", ["agent_execution", "verifier"])
async def test_engine_killed_and_restarted(engine: Engine, image_cache: Path, tmp_path: Path, phase: str) -> None:
    slow = f"sleep 600.{uuid.uuid4().int % 10**6:06}"
    agent, verifier = (slow, "true") if phase == "agent_execution" else ("true", slow)
    task = _task(tmp_path, agent, f"{verifier}; echo 0 > /logs/verifier/reward.txt")
    trial = await _trial(engine, task, image_cache, f"fault8{os.getpid()}")
    running = asyncio.create_task(trial.run())
    await eventually(lambda: running.done() or processes_with(slow.replace(" ", "\0")), f"{phase} in the sandbox")
    assert not running.done()
    kill_engine(engine)
    await asyncio.sleep(1)
    again = await asyncio.to_thread(start_engine, engine.directory or tmp_path, apart=True)
    result = await asyncio.wait_for(running, 120)
    assert _reward(result) is None
    assert result.exception_info is not None
    kind = getattr(engine_client, result.exception_info.exception_type, None)
    assert result.exception_info.exception_type == "SandboxFault" or issubclass(kind, engine_client.SandboxFault)
    async with Leftovers.at(again.host) as leftovers:
        await leftovers.sweep(lambda record: record.owner.install == f"fault8{os.getpid()}")
        assert await leftovers.containers() == []


async def test_engine_left_alone(engine: Engine, image_cache: Path, tmp_path: Path) -> None:
    """The twin: the same trial on an engine that lives gets the reward that its tests wrote."""
    task = _task(tmp_path, "sleep 0.5", "sleep 0.5; echo 0 > /logs/verifier/reward.txt")
    result = await (await _trial(engine, task, image_cache, "left-alone")).run()
    assert result.exception_info is None
    assert _reward(result) == {"reward": 0.0}


@pytest.mark.long
def test_a_worker_whose_engine_is_restarted(
    engine: Engine, cli: CommandLine, tmp_path: Path, configuration: Configuration
) -> None:
    """Whole trials of a worker: they go on or are tried again on the engine that is back, and none is scored for it."""
    cli.environment.update(configuration.environment, DOCKER_HOST=engine.host, PYTHONPATH=str(ROOT))
    supervisor = WorkerSupervisor(cli, tmp_path, configuration)
    job = supervisor.submit(2, "Patient", "--sandbox", "docker")
    supervisor.hire(1, capacity=2)
    until(lambda: len(supervisor.begun) >= 2, "both agents at work", 300)
    kill_engine(engine)
    start_engine(engine.directory or tmp_path, apart=True)
    supervisor.gate.touch()
    supervisor.ended(job, 300)
    assert {tries[-1] for tries in supervisor.tries(job)} == {PASSED}
    assert all(outcome != "failed" for tries in supervisor.tries(job) for outcome, _ in tries)
    supervisor.check(job)
