"""TBench Runner: executing, waiting, retrying, limits of a run, logs, keys."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from seatrial.domain.result import Result
from seatrial.domain.trial import TrialState
from seatrial.ports.runner import Order
from seatrial.testing.fake_runner import FAIL, PASS, FakeRunner
from tests.contracts.http.server import Server, serving
from tests.contracts.http.test_tbench_tasks import RUN, assert_shape
from tests.waiting import LIMIT_SEC

KEY = "sk-or-canary-1234567890"
RESULT = {
    "run_id",
    "task_id",
    "status",
    "success",
    "reward",
    "tests_total",
    "tests_passed",
    "tests_failed",
    "duration_seconds",
    "error",
}


@pytest.mark.parametrize("call", ["execute-async", "start"])
async def test_executing_queues_what_is_pending(server: Server, call: str) -> None:
    task = await server.upload(num_runs=3)
    answer = await server.post(f"/api/tasks/{task['id']}/{call}", params={"openrouter_api_key": KEY})
    poll = f"/api/tasks/{task['id']}"
    assert {name: answer[name] for name in ("task_id", "runs_queued", "status", "poll_url")} == {
        "task_id": task["id"],
        "runs_queued": 3,
        "status": "running",
        "poll_url": poll,
    }
    assert isinstance(answer["message"], str)
    done = await server.ended(task["id"])
    assert (done["status"], done["passed_runs"], done["total_runs"]) == ("completed", 3, 3)
    again = await server.post(f"/api/tasks/{task['id']}/{call}", status=400)
    assert set(again) == {"detail"}


async def test_a_queued_task_is_running_and_its_runs_pending(idle: Server) -> None:
    """As its page expects: it goes on polling as long as a task is running."""
    task = await idle.upload(num_runs=2)
    await idle.post(f"/api/tasks/{task['id']}/execute-async")
    detail = await idle.get(f"/api/tasks/{task['id']}")
    assert (detail["status"], [run["status"] for run in detail["runs"]]) == ("running", ["pending", "pending"])
    assert [found["id"] for found in await idle.get("/api/tasks", status="running")] == [task["id"]]
    assert (await idle.get("/api/stats"))["tasks"]["running"] == 1


async def test_executing_twice_at_once_runs_each_once(tmp_path: Path) -> None:
    runner = FakeRunner()
    async with serving(tmp_path / "home", runner) as server:
        task = await server.upload(num_runs=5)
        calls = [server.http.post(f"/api/tasks/{task['id']}/execute-async") for _ in range(6)]
        statuses = sorted([answer.status_code for answer in await asyncio.gather(*calls)])
        assert statuses[0] == 200 and set(statuses[1:]) <= {200, 400}
        await server.ended(task["id"])
        assert len(runner.orders) == 5


async def test_execute_one_waits_for_the_first_pending_run(server: Server) -> None:
    task = await server.upload(num_runs=2)
    first = await server.post(f"/api/tasks/{task['id']}/execute-one")
    assert set(first) == RESULT
    assert (first["task_id"], first["status"], first["success"], first["reward"]) == (task["id"], "passed", True, 1.0)
    detail = await server.get(f"/api/tasks/{task['id']}")
    assert [run["status"] for run in detail["runs"]] == ["passed", "pending"] and detail["status"] == "pending"
    second = await server.post(f"/api/tasks/{task['id']}/execute-one")
    assert second["run_id"] != first["run_id"]
    await server.post(f"/api/tasks/{task['id']}/execute-one", status=400)


async def test_a_single_run_is_executed_with_and_without_waiting(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", FakeRunner(lambda order: FAIL)) as server:
        task = await server.upload(num_runs=3)
        base = f"/api/tasks/{task['id']}/runs"
        one, two, three = [run["id"] for run in await server.get(base)]
        waited = await server.post(f"{base}/{two}/execute")
        assert set(waited) == RESULT
        assert (waited["run_id"], waited["status"], waited["success"], waited["reward"]) == (two, "failed", False, 0.0)
        queued = await server.post(f"{base}/{three}/execute-async")
        expected = {"task_id": task["id"], "run_id": three, "status": "queued", "poll_url": f"{base}/{three}"}
        assert {name: queued[name] for name in expected} == expected and isinstance(queued["message"], str)
        async with asyncio.timeout(LIMIT_SEC):
            while (await server.get(f"{base}/{three}"))["status"] in ("pending", "running"):
                await asyncio.sleep(0.05)
        for call in ("execute", "execute-async"):
            refused = await server.post(f"{base}/{two}/{call}", status=400)
            assert "already failed" in refused["detail"]
        assert (await server.get(f"{base}/{one}"))["status"] == "pending"


async def test_a_retry_makes_ended_runs_pending_and_keeps_their_attempts(tmp_path: Path) -> None:
    results = {"hello": (FAIL,)}
    runner = FakeRunner(results=results, files={"trial.log": b"hello"})
    async with serving(tmp_path / "home", runner) as server:
        task = await server.upload(num_runs=2)
        base = f"/api/tasks/{task['id']}"
        assert set(await server.post(f"{base}/retry", status=400)) == {"detail"}
        await server.post(f"{base}/execute-async")
        assert (await server.ended(task["id"]))["passed_runs"] == 0
        results["hello"] = (PASS,)
        answer = await server.post(f"{base}/retry")
        assert answer["task_id"] == task["id"] and isinstance(answer["message"], str)
        waiting = await server.get(base)
        assert waiting["status"] == "pending" and waiting["completed_at"] is None
        for run in waiting["runs"]:
            assert_shape(run, RUN)
            assert (run["status"], run["completed_at"], run["duration_seconds"]) == ("pending", None, None)
        later = await server.upload(num_runs=1)
        await server.post(f"/api/tasks/{later['id']}/execute-async")
        await server.ended(later["id"])
        assert len(runner.orders) == 3, "a retry alone runs nothing, or it would have run before what came later"
        await server.post(f"{base}/execute-async")
        done = await server.ended(task["id"])
        assert (done["passed_runs"], done["failed_runs"], done["total_runs"]) == (2, 0, 2)
        assert [run["run_number"] for run in done["runs"]] == [1, 2]
        assert (await server.get(f"{base}/runs/{done['runs'][1]['id']}"))["run_number"] == 2
        [_, listed] = await server.get("/api/tasks", params={"status": "completed"})
        assert {name: done[name] for name in listed} == listed
        native = await server.get(f"/api/v1/jobs/{task['id']}")
        assert (native["counts"]["failed"], native["added"]["passed"]) == (2, 2), "the first results stay"
        assert native["score"]["value"] == 0.0
        await server.post(f"{base}/retry")
        assert [run["status"] for run in (await server.get(base))["runs"]] == ["pending", "pending"]


async def test_a_running_task_cannot_be_retried(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", FakeRunner(seconds=3600)) as server:
        task = await server.upload(num_runs=1)
        await server.post(f"/api/tasks/{task['id']}/execute-async")
        assert "running" in (await server.post(f"/api/tasks/{task['id']}/retry", status=400))["detail"]


async def test_the_limit_of_a_whole_run_holds(tmp_path: Path) -> None:
    """By query and by form; a run that is cut off by it has no grade, so that it is no failure."""
    async with serving(tmp_path / "home", FakeRunner(seconds=3600)) as server:
        task = await server.upload(num_runs=2)
        base = f"/api/tasks/{task['id']}"
        one, two = [run["id"] for run in await server.get(f"{base}/runs")]
        await server.post(f"{base}/runs/{one}/execute-async", params={"timeout_seconds": 1})
        waited = await server.post(f"{base}/runs/{two}/execute", data={"timeout_seconds": "1"})
        assert (waited["status"], waited["success"], waited["reward"]) == ("error", False, None)
        assert "limit of 1 s" in waited["error"]
        done = await server.ended(task["id"])
        assert [run["status"] for run in done["runs"]] == ["error", "error"]
        assert (done["passed_runs"], done["failed_runs"], done["error_runs"]) == (0, 2, 2)
        assert (done["statistics"]["failed"], done["statistics"]["error"]) == (0, 2)


async def test_without_a_limit_it_is_twenty_minutes(idle: Server) -> None:
    task = await idle.upload(num_runs=2)
    one, two = [run["id"] for run in await idle.get(f"/api/tasks/{task['id']}/runs")]
    await idle.post(f"/api/tasks/{task['id']}/runs/{one}/execute-async")
    await idle.post(f"/api/tasks/{task['id']}/runs/{two}/execute-async", params={"timeout_seconds": 77})
    store = idle.installation.store
    assert [(await store.trials.get(run)).trial.limit_sec for run in (one, two)] == [1200, 77]
    for wrong in ("0", "-5", "soon", "inf"):
        path = f"/api/tasks/{task['id']}/execute-async"
        assert (await idle.http.post(path, params={"timeout_seconds": wrong})).status_code == 422
        assert (await idle.http.post(path, data={"timeout_seconds": wrong})).status_code == 422


async def test_a_missing_key_is_said_at_once(idle: Server) -> None:
    task = await idle.upload(agent="terminus-2", model="openrouter/openai/gpt-5.2", num_runs=1)
    base = f"/api/tasks/{task['id']}"
    [run] = await idle.get(f"{base}/runs")
    for call in ("execute-async", "start", "execute-one", f"runs/{run['id']}/execute"):
        detail = (await idle.post(f"{base}/{call}", status=400))["detail"]
        assert "OPENROUTER_API_KEY" in detail
    assert (await idle.installation.store.trials.get(run["id"])).trial.state is TrialState.HELD
    await idle.post(f"{base}/execute-async", params={"openrouter_api_key": KEY})


@pytest.mark.parametrize("way", ["query", "form", "header"])
async def test_the_key_reaches_the_run_and_is_forgotten_after_it(tmp_path: Path, way: str) -> None:
    seen: list[dict[str, str]] = []

    def script(order: Order) -> Result:
        seen.append(dict(order.secrets))
        return PASS

    given: dict[str, dict[str, Any]] = {
        "query": {"params": {"openrouter_api_key": KEY}},
        "form": {"data": {"openrouter_api_key": KEY}},
        "header": {"headers": {"X-Provider-Key": f"OPENROUTER_API_KEY={KEY}"}},
    }
    async with serving(tmp_path / "home", FakeRunner(script)) as server:
        task = await server.upload(agent="terminus-2", model="openrouter/openai/gpt-5.2", num_runs=1)
        await server.post(f"/api/tasks/{task['id']}/execute-async", **given[way])
        await server.ended(task["id"])
        assert seen == [{"OPENROUTER_API_KEY": KEY}]
        assert await server.installation.store.jobs.sealed_keys(task["id"]) is None
    assert not [path for path in (tmp_path / "home").rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


async def test_logs_keep_the_end_and_the_tests_come_last(tmp_path: Path) -> None:
    files = {
        "agent/oracle.txt": b"agent line\n" * 100_000 + b"LAST AGENT LINE\n",
        "verifier/test-stdout.txt": b"test line\n" * 100_000 + b"2 failed, 1 passed\n",
        "agent/episode-0/prompt.txt": b"not in the logs",
        "agent/recording.cast": b"not in the logs either",
    }
    async with serving(tmp_path / "home", FakeRunner(files=files)) as server:
        task = await server.upload(num_runs=2)
        one, two = [run["id"] for run in await server.get(f"/api/tasks/{task['id']}/runs")]
        assert (await server.get(f"/api/tasks/{task['id']}/runs/{two}/logs"))["logs"] == ""
        await server.post(f"/api/tasks/{task['id']}/runs/{one}/execute")
        answer = await server.get(f"/api/tasks/{task['id']}/runs/{one}/logs")
        assert set(answer) == {"run_id", "task_id", "run_number", "status", "logs", "error_message"}
        assert (answer["run_id"], answer["task_id"], answer["run_number"]) == (one, task["id"], 1)
        logs = answer["logs"]
        assert logs.index("LAST AGENT LINE") < logs.index("2 failed, 1 passed") > len(logs) - 100
        assert "not in the logs" not in logs and len(logs) < 1_000_000
        run = await server.get(f"/api/tasks/{task['id']}/runs/{one}")
        assert_shape(run, RUN)
        assert run["logs"] == logs
        assert [run["logs"] for run in await server.get(f"/api/tasks/{task['id']}/runs")] == [None, None]
