"""What the engine relies on, asked of the fake runner and of Harbor in real sandboxes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from seatrial.adapters.runner_harbor.equip import ModelAccess
from seatrial.adapters.runner_harbor.runner import HarborRunner
from seatrial.adapters.tasks_harbor import HarborTasks
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.result import Result, Usage
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Outcome, Phase, Trial
from seatrial.ports.runner import Order, Runner, Window
from seatrial.sandboxes.oci.leftovers import Leftovers
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.selection import SandboxSelection
from seatrial.testing.fake_runner import FAIL, PASS, FakeRunner
from tests.task_files import SOLVE, TEST, write_task

KEY = "sk-canary-that-no-file-may-hold"
BROKEN = Result(outcome=Outcome.ERROR, cause=Cause.VERIFIER, message="The verifier gave no reward.")
FILES = {"agent/oracle.txt": b"done\n"}
NEVER_ENDS = "sleep 3600"


@dataclass(frozen=True)
class Kind:
    """A runner, and whether anything that it started is still there."""

    runner: Runner
    slow_runner: Runner
    leftovers: Callable[[], int]


class Heard:
    """A progress that remembers, and says when the agent's turn began."""

    def __init__(self) -> None:
        self.phases: list[Phase] = []
        self.agent_began = asyncio.Event()

    async def phase(self, phase: Phase, step: str | None = None) -> None:
        self.phases.append(phase)
        if phase is Phase.AGENT:
            self.agent_began.set()

    def spent(self, usage: Usage) -> None:
        """The result tells it too."""

    def shows(self, window: Window) -> None:
        """Nobody watches here."""


@pytest.fixture(params=["fake", pytest.param("harbor", marks=pytest.mark.sandbox)])
async def kind(request: pytest.FixtureRequest) -> AsyncIterator[Kind]:
    if request.param == "fake":
        results = {"passes": [PASS], "fails": [FAIL], "no-reward": [BROKEN]}
        yield Kind(FakeRunner(results=results, files=FILES), FakeRunner(seconds=3600), lambda: 0)
        return
    options = SandboxOptions(cache=request.getfixturevalue("image_cache"))
    install = f"contract-{uuid.uuid4().hex[:8]}"

    def leftovers() -> int:
        return sum(record.owner.install == install for record in Leftovers(options.run_dir).sandboxes())

    async with ModelAccess() as models:
        runner = HarborRunner(options, install, SandboxSelection(options), models)
        yield Kind(runner, runner, leftovers)


def order(folder: Path, name: str, *, solve: str = SOLVE, test: str = TEST) -> Order:
    root = write_task(folder / "tasks", name, solve=solve, test=test)
    task = HarborTasks().inspect(root).task
    assert task is not None
    ref, agent = TaskRef(name=task.name, digest=task.digest), AgentSpec(name="oracle")
    now = datetime.now(UTC)
    trial = Trial(
        id=1, job_id=1, task=ref, agent_index=0, agent=agent.name, model=None, attempt=1, try_number=1, created_at=now
    )
    work_dir = folder / "work"
    work_dir.mkdir()
    job = JobSpec(tasks=(ref,), agents=(agent,), sandbox="oci")
    return Order(trial, task, root, job, agent, work_dir=work_dir, secrets={"OPENAI_API_KEY": KEY})


async def test_a_pass_has_its_reward_its_files_and_its_phases_in_order(kind: Kind, tmp_path: Path) -> None:
    wanted, heard = order(tmp_path, "passes"), Heard()
    result = await kind.runner.run(wanted, heard)
    assert (result.outcome, result.reward, result.cause) == (Outcome.PASSED, 1.0, None), result.message
    assert heard.phases.index(Phase.START) < heard.phases.index(Phase.AGENT) < heard.phases.index(Phase.VERIFY)
    assert heard.phases.count(Phase.AGENT) == heard.phases.count(Phase.VERIFY) == 1
    left = [path for path in wanted.work_dir.rglob("*") if path.is_file()]
    assert any(path.relative_to(wanted.work_dir).parts[0] == "agent" for path in left)
    assert not any(KEY.encode() in path.read_bytes() for path in left)
    assert kind.leftovers() == 0


async def test_a_failure_is_a_result(kind: Kind, tmp_path: Path) -> None:
    result = await kind.runner.run(order(tmp_path, "fails", solve="true"), Heard())
    assert (result.outcome, result.reward, result.cause) == (Outcome.FAILED, 0.0, None), result.message


async def test_a_fault_comes_back_as_an_error_with_its_cause(kind: Kind, tmp_path: Path) -> None:
    result = await kind.runner.run(order(tmp_path, "no-reward", test="true"), Heard())
    assert (result.outcome, result.cause, result.reward) == (Outcome.ERROR, Cause.VERIFIER, None)
    assert result.message
    assert kind.leftovers() == 0


async def test_cancelling_stops_the_trial_and_leaves_nothing(kind: Kind, tmp_path: Path) -> None:
    heard = Heard()
    running = asyncio.create_task(kind.slow_runner.run(order(tmp_path, "slow", solve=NEVER_ENDS), heard))
    await heard.agent_began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert kind.leftovers() == 0


async def test_trials_run_side_by_side(kind: Kind, tmp_path: Path) -> None:
    orders = [order(tmp_path / name, name, solve=solve) for name, solve in (("passes", SOLVE), ("fails", "true"))]
    results = await asyncio.gather(*(kind.runner.run(each, Heard()) for each in orders))
    assert [result.outcome for result in results] == [Outcome.PASSED, Outcome.FAILED]
