"""How TBench Runner's load scripts wait: each of their rules ends, whatever the runs came to.

Two scripts add up ``passed_runs + failed_runs`` of their tasks until that is all; the third waits until a task's status
is ``completed``. The rules are written anew here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.domain.result import Result
from seatrial.domain.trial import Cause, Mark, Outcome
from seatrial.testing.fake_runner import FAIL, PASS, FakeRunner
from tests.contracts.http.server import Server, serving
from tests.waiting import LIMIT_SEC

LATE = FAIL.model_copy(update={"marks": (Mark.AGENT_TIMEOUT,)})
RUNS = 4


def fault(cause: Cause) -> Result:
    return Result(outcome=Outcome.ERROR, cause=cause, message=f"A fault: {cause}.")


HOW_RUNS_END = {
    "all passed": [PASS] * RUNS,
    "some failed": [PASS, FAIL, LATE, PASS],
    "one fault": [PASS, FAIL, PASS, fault(Cause.VERIFIER)],
    "only faults": [fault(cause) for cause in (Cause.VERIFIER, Cause.AGENT, Cause.IMAGE, Cause.VERIFIER)],
}


async def all_are_counted(server: Server, task_ids: list[int]) -> None:
    async with asyncio.timeout(LIMIT_SEC):
        while True:
            tasks = [await server.get(f"/api/tasks/{task_id}") for task_id in task_ids]
            if sum(task["passed_runs"] + task["failed_runs"] for task in tasks) >= RUNS * len(task_ids):
                return
            await asyncio.sleep(0.05)


async def each_is_completed(server: Server, task_ids: list[int]) -> None:
    async with asyncio.timeout(LIMIT_SEC):
        for task_id in task_ids:
            while (await server.get(f"/api/tasks/{task_id}"))["status"] != "completed":
                await asyncio.sleep(0.05)


async def started(server: Server) -> list[int]:
    ids = [(await server.upload(name=f"load-{number}", num_runs=RUNS))["id"] for number in range(2)]
    for task_id in ids:
        assert (await server.post(f"/api/tasks/{task_id}/execute-async"))["runs_queued"] == RUNS
    return ids


@pytest.mark.parametrize("ends", HOW_RUNS_END)
@pytest.mark.parametrize("rule", [all_are_counted, each_is_completed])
async def test_a_script_ends(tmp_path: Path, ends: str, rule: Callable[[Server, list[int]], Awaitable[None]]) -> None:
    results = HOW_RUNS_END[ends]
    async with serving(tmp_path / "home", FakeRunner(lambda order: results[order.trial.attempt - 1])) as server:
        ids = await started(server)
        await rule(server, ids)
        for task_id in ids:
            await told_apart(server, task_id, results)


async def told_apart(server: Server, task_id: int, results: list[Result]) -> None:
    """What has no grade is counted as failed for the scripts, and told apart everywhere else."""
    passed, failed, error = (
        sum(result.outcome is outcome for result in results)
        for outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.ERROR)
    )
    task: dict[str, Any] = await server.get(f"/api/tasks/{task_id}")
    assert (task["passed_runs"], task["failed_runs"], task["error_runs"]) == (passed, failed + error, error)
    assert [run["status"] for run in task["runs"]].count("error") == error
    native = (await server.get(f"/api/v1/jobs/{task_id}"))["counts"]
    assert (native["passed"], native["failed"], native["error"]) == (passed, failed, error)


async def test_unfinished_runs_are_not_counted(tmp_path: Path) -> None:
    """The twin: a rule that ended here would end too early."""
    async with serving(tmp_path / "home", None) as server:
        for task_id in await started(server):
            task = await server.get(f"/api/tasks/{task_id}")
            assert (task["status"], task["passed_runs"], task["failed_runs"]) == ("running", 0, 0)
