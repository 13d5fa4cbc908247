"""Workers as settings assemble them, on the HTTP servers that stand for ECS and EC2."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from seatrial.domain.trial import TrialState
from seatrial.errors import SetupProblem
from seatrial.ports.store import TrialFilter
from seatrial.settings import Settings
from seatrial.testing.fake_runner import FakeRunner
from seatrial.wiring import Machine, assemble_worker, leave_machine, machine_of
from seatrial.worker import Worker
from tests.contracts.platform.servers import AutoScalingActions, EcsAgent, Metadata, serving
from tests.integration.operations.conftest import Api, opened
from tests.waiting import LIMIT_SEC, eventually


def settings(place: Path, **told: object) -> Settings:
    home = {"home": place / "home", "cache": place / "cache", "heartbeat_sec": 0.1, "reap_sec": 1.0}
    return Settings(**home, **told)  # type: ignore[arg-type]


@asynccontextmanager
async def working(api: Api, runner: FakeRunner) -> AsyncIterator[tuple[Worker, Machine, asyncio.Task[None]]]:
    machine = await machine_of(api.installation.settings)
    worker = assemble_worker(api.installation, runner, 2, machine=machine)
    task = asyncio.create_task(worker.run())
    try:
        yield worker, machine, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_ecs_task_is_protected_while_its_worker_holds_trials(tmp_path: Path) -> None:
    agent, runner = EcsAgent(), FakeRunner(seconds=LIMIT_SEC)
    with serving(agent) as url:
        told = settings(tmp_path, platform="ecs", ecs_agent_uri=f"{url}/api/task-1", drain_seconds=0.1)
        async with opened(told, tmp_path) as api, working(api, runner) as (worker, _, task):
            assert agent.wishes == [], "an idle worker asks for nothing"
            await api.submit(2)
            await eventually(lambda: len(runner.orders) == 2, "both run")
            assert agent.is_protected
            worker.drain()
            async with asyncio.timeout(LIMIT_SEC):
                await task
            assert not agent.is_protected
            trials = [row.trial async for row in api.installation.store.trials.each(TrialFilter())]
            assert {(trial.state, trial.tries_made) for trial in trials} == {(TrialState.QUEUED, 0)}


async def test_an_instance_drains_when_its_group_ends_it_and_completes_the_hook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = AutoScalingActions("fleet")
    metadata, runner = Metadata({"instance-id": "i-1", "placement/region": "us-east-1"}), FakeRunner(seconds=0.2)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with serving(group) as endpoint, serving(metadata) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_AUTO_SCALING", endpoint)
        told = settings(tmp_path, platform="ec2", ec2_metadata_url=url, ec2_lifecycle_hook="drain")
        async with opened(told, tmp_path) as api, working(api, runner) as (worker, machine, task):
            await api.submit(1)
            await eventually(lambda: runner.orders, "it runs")
            assert any("ProtectedFromScaleIn=true" in body for body in group.bodies)
            metadata.values["autoscaling/target-lifecycle-state"] = "Terminated"
            async with asyncio.timeout(LIMIT_SEC):
                await task
            assert worker.was_noticed and not worker.left_idle
            await leave_machine(told, machine, idle=worker.left_idle, noticed=worker.was_noticed)
            (row,) = [row.trial async for row in api.installation.store.trials.each(TrialFilter())]
            assert (row.state, row.try_number) == (TrialState.ENDED, 1), "the group waited for it"
        assert "Action=CompleteLifecycleAction" in group.bodies[-1]
        assert not any("TerminateInstance" in body for body in group.bodies)


async def test_ecs_without_its_agent_is_a_problem_of_the_setup(tmp_path: Path) -> None:
    with pytest.raises(SetupProblem, match="ECS_AGENT_URI"):
        await machine_of(settings(tmp_path, platform="ecs", ecs_agent_uri=""))


async def test_without_a_platform_nobody_is_asked(tmp_path: Path) -> None:
    machine = await machine_of(settings(tmp_path))
    assert (machine.protection, machine.notices, machine.departure) == (None, None, None)
