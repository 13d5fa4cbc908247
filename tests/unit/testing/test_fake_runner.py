"""The fake runner does what the script says."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.result import Result, Usage
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Cause, Outcome, Phase, Trial
from seatrial.ports.runner import Order, Window
from seatrial.testing.fake_runner import FAIL, PASS, FakeRunner

FAULT = Result(outcome=Outcome.ERROR, cause=Cause.SANDBOX)


class Heard:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.phases: list[Phase] = []

    async def phase(self, phase: Phase, step: str | None = None) -> None:
        self.phases.append(phase)

    def spent(self, usage: Usage) -> None:
        """The result tells it too."""

    def shows(self, window: Window) -> None:
        raise AssertionError("it has no sandbox")


def order(work_dir: Path, task: str = "hello", try_number: int = 1) -> Order:
    ref, agent = TaskRef(name=task, digest="sha256:0"), AgentSpec(name="oracle")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    trial = Trial(id=1, job_id=1, task=ref, agent_index=0, agent="oracle", model=None, attempt=1, created_at=now)
    return Order(
        trial=trial.model_copy(update={"try_number": try_number}),
        task=Task(digest=ref.digest, name=task, format=TaskFormat.HARBOR, instruction=""),
        task_dir=work_dir,
        job=JobSpec(tasks=(ref,), agents=(agent,)),
        agent=agent,
        work_dir=work_dir,
    )


async def test_it_passes_and_goes_through_every_phase(tmp_path: Path) -> None:
    runner, heard = FakeRunner(files={"logs/a.txt": b"a"}), Heard()
    assert await runner.run(order(tmp_path), heard) == PASS
    assert heard.phases == list(Phase)
    assert (tmp_path / "logs" / "a.txt").read_bytes() == b"a"


async def test_results_by_task_and_attempt(tmp_path: Path) -> None:
    runner = FakeRunner(results={"flaky": [FAULT, PASS], "hard": [FAIL]})
    outcomes = [
        (await runner.run(order(tmp_path, task, try_number), Heard())).outcome.value
        for task, try_number in (("flaky", 1), ("flaky", 2), ("flaky", 3), ("hard", 2), ("other", 1))
    ]
    assert outcomes == ["error", "passed", "passed", "failed", "passed"]


async def test_a_script_decides_and_trials_overlap(tmp_path: Path) -> None:
    runner = FakeRunner(lambda order: FAIL if order.trial.try_number == 2 else PASS, seconds=0.01)
    results = await asyncio.gather(*(runner.run(order(tmp_path, try_number=n), Heard()) for n in (1, 2, 3)))
    assert [result.outcome.value for result in results] == ["passed", "failed", "passed"]
    assert runner.most_at_once == 3 and len(runner.orders) == 3
    assert results[0].seconds == 0.01
