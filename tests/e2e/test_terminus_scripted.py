"""terminus-2 with a scripted model in a real sandbox: it passes by reading the screen and fails by giving up, and a
model's service that fails it is never counted as a failed attempt."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from seatrial.adapters.runner_harbor.equip import ModelAccess
from seatrial.adapters.runner_harbor.runner import HarborRunner
from seatrial.adapters.tasks_harbor import HarborTasks
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.result import Result, Usage
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Mark, Outcome, Phase, Trial
from seatrial.ports.runner import Order, Window
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.selection import SandboxSelection
from seatrial.sandboxes.terminal import recording
from seatrial.scripted_models import faults
from seatrial.scripted_models.faults import Fault
from seatrial.scripted_models.server import ScriptedModels
from tests.recordings import events_of
from tests.trials import Workplace

SAMPLE = Path(__file__).parents[2] / "samples" / "read-the-screen"
KEY = "sk-canary-0987654321"

pytestmark = [
    pytest.mark.sandbox,
    # LiteLLM's types make pydantic warn on first use.
    pytest.mark.filterwarnings("ignore:Item .* on TypedDict class:UserWarning"),
]


@dataclass
class Heard:
    """What a runner told while it ran."""

    phases: list[Phase] = field(default_factory=list)

    async def phase(self, phase: Phase, step: str | None = None) -> None:
        self.phases.append(phase)

    def spent(self, usage: Usage) -> None:
        """The result tells it too."""

    def shows(self, window: Window) -> None:
        pass


@dataclass
class Bench:
    """Runs the sample with one model after another."""

    runner: HarborRunner
    directory: Path
    sandbox: str
    sample: Path = SAMPLE

    async def run(self, script: str, models: ScriptedModels, key: str = KEY, **options: Any) -> Result:
        inspection = HarborTasks().inspect(self.sample)
        assert inspection.task is not None
        agent = AgentSpec(name="terminus-2", model=f"openai/{script}", options={"api_base": models.base_url, **options})
        ref = TaskRef(name=inspection.task.name, digest=inspection.task.digest)
        job = JobSpec(tasks=(ref,), agents=(agent,), sandbox=self.sandbox)
        now = datetime.now(UTC)
        trial = Trial(
            id=1, job_id=1, task=ref, agent_index=0, agent=agent.name, model=agent.model, attempt=1, created_at=now
        )
        self.directory.mkdir()
        secrets = {"OPENAI_API_KEY": key}
        order = Order(trial, inspection.task, self.sample, job, agent, work_dir=self.directory, secrets=secrets)
        return await self.runner.run(order, Heard())

    def file(self, name: str) -> Path:
        (found,) = self.directory.rglob(name)
        return found


@pytest.fixture
async def bench(tmp_path: Path, image_cache: Path) -> AsyncIterator[Bench]:
    async with _opened(Workplace(tmp_path, image_cache)) as bench:
        yield bench


@asynccontextmanager
async def _opened(workplace: Workplace, sample: Path = SAMPLE) -> AsyncIterator[Bench]:
    options = SandboxOptions(**workplace.options())
    async with ModelAccess() as access:
        runner = HarborRunner(options, "e2e", SandboxSelection(options), access)
        yield Bench(runner, workplace.directory / "work", workplace.kind, sample)


async def test_it_passes_by_reading_the_screen(workplace: Workplace) -> None:
    async with _opened(workplace) as bench, ScriptedModels(key=KEY) as models:
        result = await bench.run("solve-read-the-screen", models, temperature=0.25, top_p=0.5, seed=7, max_turns=30)
    assert (result.outcome, result.rewards, result.cause) == (Outcome.PASSED, {"reward": 1.0}, None), result.message
    assert result.usage.model_calls == models.calls >= 5
    assert (result.usage.input_tokens or 0) > 0
    for call in models.requests:
        assert {name: call.body[name] for name in ("temperature", "top_p", "seed")} == {
            "temperature": 0.25,
            "top_p": 0.5,
            "seed": 7,
        }
        assert call.headers["authorization"] == f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"
    _the_recording_shows_the_codes(bench.file("recording.cast"))
    _the_trajectory_has_the_conversation(bench.file("trajectory.json"))
    _the_key_is_nowhere(bench.directory)


async def test_it_needs_nothing_of_the_image(workplace: Workplace) -> None:
    """Neither tmux, nor Python, nor a package manager that could bring them."""
    sample = shutil.copytree(SAMPLE, workplace.directory / "bare")
    with (sample / "environment" / "Dockerfile").open("a") as dockerfile:
        dockerfile.write("RUN rm -rf /usr/bin/apt* /usr/bin/dpkg* /usr/lib/apt /var/lib/dpkg /usr/bin/perl*\n")
    async with _opened(workplace, sample) as bench, ScriptedModels(key=KEY) as models:
        result = await bench.run("solve-read-the-screen", models)
    assert (result.outcome, result.rewards) == (Outcome.PASSED, {"reward": 1.0}), result.message
    assert Mark.SUSPECT_PATH not in result.marks
    _the_recording_shows_the_codes(bench.file("recording.cast"))


def _the_recording_shows_the_codes(path: Path) -> None:
    recording.repair_recording(path)
    events = events_of(path)
    shown = "".join(event.data for event in events if event.kind == "o")
    assert len(set(re.findall(r"Code \d of 3: (\d{6})", shown))) == 3
    assert "ALL CODES ACCEPTED" in shown
    assert events[-1].at > 0.5


def _the_trajectory_has_the_conversation(path: Path) -> None:
    steps = json.loads(path.read_text())["steps"]
    typed = [
        call["arguments"]["keystrokes"]
        for step in steps
        for call in step.get("tool_calls") or []
        if step["source"] == "agent" and call["function_name"] == "bash_command"
    ]
    assert sum(keys.startswith("/app/reply.sh ") for keys in typed) == 3


def _the_key_is_nowhere(directory: Path) -> None:
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []


async def test_it_fails_by_giving_up(bench: Bench) -> None:
    async with ScriptedModels(key=KEY) as models:
        result = await bench.run("give-up", models)
    assert (result.outcome, result.rewards, result.cause) == (Outcome.FAILED, {"reward": 0.0}, None), result.message
    assert models.calls == 2  # terminus-2 asks whether it is sure


async def test_a_busy_service_only_costs_time(bench: Bench) -> None:
    busy = Fault(kind="rate_limit", retry_after_sec=1)
    plan = faults.first([busy, None, busy, Fault(kind="cut"), Fault(kind="server_error", status=503)])
    async with ScriptedModels(key=KEY, faults=plan) as models:
        result = await bench.run("solve-read-the-screen", models)
    assert result.outcome is Outcome.PASSED, result.message
    assert sum(call.fault is not None for call in models.requests) == 4


async def test_a_refused_key_is_an_llm_error_and_never_a_failed_attempt(bench: Bench) -> None:
    async with ScriptedModels(key="another") as models:
        result = await bench.run("give-up", models)
    assert (result.outcome, result.cause, result.rewards) == (Outcome.ERROR, Cause.LLM, {}), result.message
    assert models.calls == 1
    assert "AuthenticationError" in result.message
    _the_key_is_nowhere(bench.directory)
