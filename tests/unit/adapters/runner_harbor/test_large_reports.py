"""A verifier may write a large report. Reading it must not stop the event loop of the worker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest
from harbor.models.trial.result import TrialResult

from seatrial.adapters.runner_harbor.outcome import read_result


def graded() -> TrialResult:
    return TrialResult.model_construct(
        id=uuid4(),
        exception_info=None,
        verifier_result=None,
        step_results=None,
        agent_result=None,
        environment_setup=None,
        agent_setup=None,
        agent_execution=None,
        verifier=None,
        started_at=None,
        finished_at=None,
    )


async def turns_while(reading: asyncio.Task[object]) -> int:
    """How often the event loop ran another task while it waited for this one."""
    turns = 0
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    return turns


@pytest.mark.parametrize("lines", [1, 100_000])
async def test_the_event_loop_runs_while_a_report_is_read(tmp_path: Path, lines: int) -> None:
    (tmp_path / "verifier").mkdir()
    (tmp_path / "verifier" / "test-stdout.txt").write_text("PASSED tests/test_it.py::test_one\n" * lines)
    reading = asyncio.create_task(read_result(graded(), tmp_path))
    turns = await turns_while(reading)
    assert [test.name for test in (await reading).tests] == ["tests/test_it.py::test_one"]
    assert turns > 1, "one turn only means that the loop itself read the report"


async def test_a_grade_that_is_being_read_is_not_lost_to_a_cancellation(tmp_path: Path) -> None:
    (tmp_path / "verifier").mkdir()
    (tmp_path / "verifier" / "test-stdout.txt").write_text("PASSED tests/test_it.py::test_one\n" * 100_000)
    reading = asyncio.create_task(read_result(graded(), tmp_path))
    await asyncio.sleep(0)
    for _ in range(3):
        reading.cancel()
        await asyncio.sleep(0)
    assert [test.name for test in (await reading).tests] == ["tests/test_it.py::test_one"]
