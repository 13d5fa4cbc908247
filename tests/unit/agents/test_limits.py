"""An agent is told its limits where it runs, and what it waits for others does not count."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from seatrial.agents.limits import DEADLINE, LIMITS, PLACE, TrialLimits, tell_limits
from seatrial.domain.model_calls.budget import Amount, Cap
from seatrial.sandboxes.own_time import OwnTime, clock_stopped
from tests.virtual_time import run_virtual
from tests.waiting import eventually


@dataclass
class ForeignSandbox:
    """What a Harbor environment that is not ours has."""

    variables: dict[str, str] = field(default_factory=dict)
    written: list[dict[str, Any]] = field(default_factory=list)
    is_broken: bool = False
    fault: Exception = field(default_factory=lambda: OSError("no room"))

    @contextmanager
    def scoped_exec_env(self, variables: dict[str, str]) -> Iterator[None]:
        self.variables = variables
        yield

    async def upload_file(self, source_path: Path, target_path: str) -> None:
        if self.is_broken:
            raise self.fault
        assert target_path == str(PLACE)
        self.written.append(json.loads(source_path.read_text()))


@dataclass
class Agent:
    heard: str = ""
    left: list[Amount] = field(default_factory=lambda: [Cap(calls=9).limits])

    async def run(self, instruction: str, environment: ForeignSandbox, context: Any) -> None:
        self.heard = instruction
        self.left.append(Cap(calls=4).limits)
        await eventually(lambda: environment.is_broken or environment.written[-1]["calls_left"] == 4, "the file anew")


async def run(limits: TrialLimits, agent: Agent, sandbox: ForeignSandbox, own_sec: float | None = 600.0) -> None:
    tell_limits(agent, limits)
    async with OwnTime(own_sec):
        await agent.run(instruction="Do it.\n", environment=sandbox, context=None)


async def test_time_and_budget_are_told_and_kept_true() -> None:
    agent, sandbox = Agent(), ForeignSandbox()
    began = time.monotonic()
    await run(TrialLimits(budget_left=lambda: agent.left[-1], refresh_sec=0.01), agent, sandbox)
    took = time.monotonic() - began
    first = sandbox.written[0]
    assert first["calls_left"] == 9 and first["usd_left"] is None
    assert 599 - took <= first["seconds_left"] <= 600, "whole seconds"
    assert sandbox.variables[LIMITS] == str(PLACE)
    assert abs(datetime.fromisoformat(sandbox.variables[DEADLINE]) - datetime.fromisoformat(first["deadline"])) <= (
        timedelta(seconds=1 + took)
    )
    assert agent.heard == "Do it.\n", "nothing is added unless the job asks for it"


async def test_the_instruction_says_it_where_the_job_asks() -> None:
    agent, sandbox = Agent(), ForeignSandbox()
    await run(TrialLimits(lambda: agent.left[-1], in_instruction=True, refresh_sec=0.01), agent, sandbox)
    assert agent.heard.startswith("Do it.\n\nYou have 10 minutes for this task, until 20")
    assert "at most 9 calls on your model" in agent.heard and str(PLACE) in agent.heard


async def test_the_earlier_of_two_ends_counts() -> None:
    soon = datetime.now(UTC) + timedelta(seconds=100)
    agent, sandbox = Agent(), ForeignSandbox()
    await run(TrialLimits(lambda: agent.left[-1], ends_at=soon, refresh_sec=0.01), agent, sandbox)
    assert sandbox.written[0]["deadline"] == soon.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("fault", [OSError("no room"), RuntimeError("not found")], ids=["disk", "foreign"])
async def test_a_sandbox_that_cannot_show_the_file_ends_nothing(fault: Exception) -> None:
    agent, sandbox = Agent(), ForeignSandbox(is_broken=True, fault=fault)
    await run(TrialLimits(in_instruction=True), agent, sandbox)
    assert set(sandbox.variables) == {DEADLINE} and str(PLACE) not in agent.heard and "until 20" in agent.heard


class Waverer(ForeignSandbox):
    """Takes the first file, refuses two, and takes all others."""

    refused = 0

    async def upload_file(self, source_path: Path, target_path: str) -> None:
        if self.written and self.refused < 2:
            self.refused += 1
            raise ConnectionError("a moment")
        await super().upload_file(source_path, target_path)


async def test_a_fault_that_passes_leaves_the_file_true(caplog: pytest.LogCaptureFixture) -> None:
    agent, sandbox = Agent(), Waverer()
    await run(TrialLimits(budget_left=lambda: agent.left[-1], refresh_sec=0.01), agent, sandbox)
    assert sandbox.refused == 2 and sandbox.written[-1]["calls_left"] == 4
    assert any("Limits file failed" in said for said in caplog.messages)


async def test_a_trial_without_a_clock_of_its_own_and_one_without_limits() -> None:
    agent, sandbox = Agent(), ForeignSandbox()
    tell_limits(agent, TrialLimits(lambda: agent.left[-1], agent_limit_sec=50.0, refresh_sec=0.01))
    began = time.monotonic()
    await agent.run(instruction="x", environment=sandbox, context=None)
    assert 49 - (time.monotonic() - began) <= sandbox.written[0]["seconds_left"] <= 50
    free, open_ended = Agent(), ForeignSandbox()
    await run(TrialLimits(lambda: free.left[-1], refresh_sec=0.01), free, open_ended, own_sec=None)
    assert DEADLINE not in open_ended.variables and open_ended.written[0]["deadline"] is None


def test_the_time_left_stands_still_while_the_clock_does() -> None:
    async def told() -> list[float | None]:
        async with OwnTime(100) as clock:
            left = [clock.left_sec]
            await asyncio.sleep(10)
            with clock_stopped():
                await asyncio.sleep(200)
                left.append(clock.left_sec)
                await asyncio.sleep(200)
                left.append(clock.left_sec)
            left.append(clock.left_sec)
            await asyncio.sleep(20)
            left.append(clock.left_sec)
        async with OwnTime(None) as free:
            return [*left, free.left_sec]

    assert run_virtual(told()) == [100, 90, 90, 90, 70, None]
