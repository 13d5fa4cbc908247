"""TBench Runner: uploads, lists, details, deletion, catalogues, statistics."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.result import Result, TestResult, TestStatus
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Mark, Outcome
from seatrial.ports.runner import Order
from seatrial.ports.store import Page
from seatrial.testing.fake_runner import FAIL, PASS, FakeRunner
from tests.contracts.http.server import Server, serving, task_zip, zipped
from tests.waiting import LIMIT_SEC

TASK = {
    "id": int,
    "name": str,
    "description": (str, type(None)),
    "original_filename": str,
    "model": str,
    "agent": str,
    "harness": str,
    "num_runs": int,
    "status": str,
    "created_at": str,
    "started_at": (str, type(None)),
    "completed_at": (str, type(None)),
    "total_runs": int,
    "passed_runs": int,
    "failed_runs": int,
}
RUN = {
    "id": int,
    "task_id": int,
    "run_number": int,
    "status": str,
    "started_at": (str, type(None)),
    "completed_at": (str, type(None)),
    "tests_total": int,
    "tests_passed": int,
    "tests_failed": int,
    "logs": (str, type(None)),
    "error_message": (str, type(None)),
    "duration_seconds": (float, int, type(None)),
}


def assert_shape(found: dict[str, object], shape: dict[str, object]) -> None:
    assert not set(shape) - set(found), "a field of the contract is missing"
    wrong = {name: found[name] for name, kind in shape.items() if not isinstance(found[name], kind)}  # type: ignore[arg-type]
    assert wrong == {}


async def test_the_root_tells_programs_what_runs_here(idle: Server) -> None:
    about = await idle.get("/")
    assert set(about) >= {"name", "version", "status", "docs"} and about["status"] == "running"


async def test_health_is_what_both_systems_read(idle: Server) -> None:
    health = await idle.get("/health")
    assert {name: health[name] for name in ("status", "service")} == {"status": "healthy", "service": "Terminal-Bench"}


async def test_catalogues_answer_before_any_worker_exists(idle: Server) -> None:
    models, agents = await idle.get("/api/models"), await idle.get("/api/agents")
    assert all(set(model) == {"id", "name", "provider"} for model in models)
    assert all(set(agent) == {"id", "name", "harness"} for agent in agents)
    names = " ".join(model["id"] for model in models if model["id"].startswith("openrouter/"))
    assert all(wanted in names for wanted in ("gpt-5.2", "gpt-4o", "claude", "gemini", "llama"))
    assert {"terminus-2", "oracle"} <= {agent["id"] for agent in agents}


async def test_an_upload_is_a_task_whose_runs_are_pending(idle: Server) -> None:
    task = await idle.upload(name="my task", model="openrouter/openai/gpt-4o", agent="terminus-2", num_runs=3)
    assert_shape(task, TASK)
    assert (task["name"], task["original_filename"], task["model"]) == (
        "my task",
        "hello.zip",
        "openrouter/openai/gpt-4o",
    )
    assert (task["agent"], task["harness"], task["num_runs"], task["status"]) == ("terminus-2", "harbor", 3, "pending")
    detail = await idle.get(f"/api/tasks/{task['id']}")
    assert_shape(detail, TASK)
    assert [run["status"] for run in detail["runs"]] == ["pending"] * 3
    for number, run in enumerate(detail["runs"], 1):
        assert_shape(run, RUN)
        assert (run["run_number"], run["task_id"]) == (number, task["id"])


async def test_what_an_upload_defaults_to(idle: Server) -> None:
    answer = await idle.http.post("/api/tasks", params={"name": "n"}, files={"file": ("n.zip", task_zip())})
    assert answer.status_code == 200
    task = answer.json()
    assert (task["agent"], task["harness"], task["num_runs"]) == ("terminus-2", "harbor", 10)


async def test_parameters_may_be_fields_of_the_form(idle: Server) -> None:
    form = {"name": "from the form", "agent": "oracle", "num_runs": "2"}
    answer = await idle.http.post("/api/tasks", data=form, files={"file": ("t.zip", task_zip())})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["name"], answer.json()["num_runs"]) == ("from the form", 2)


NO_TASKS = [
    (b"no archive at all", "ZIP"),
    (b"", "ZIP"),
    (b"\x1f\x8b\x08\x00rest of a gzip", "ZIP"),
    (b"PK\x03\x04 and then nothing", "rchive"),
    (zipped({"readme.txt": "no task in here"}), "no task"),
    (task_zip(tests__test_dot_sh="", environment__Dockerfile=""), "problem"),
    (zipped({"../../evil/task.toml": "x"}), "refused"),
]


async def test_what_is_no_valid_zip_is_400(idle: Server) -> None:
    for archive, words in NO_TASKS:
        files = {"file": ("../../../etc/passwd.zip", archive, "application/zip")}
        answer = await idle.http.post("/api/tasks", params={"name": "n", "agent": "oracle"}, files=files)
        assert answer.status_code == 400, answer.text
        assert set(answer.json()) == {"detail"} and words in answer.json()["detail"]
    assert await idle.get("/api/tasks") == []


async def test_all_problems_of_a_task_are_told_at_once(idle: Server) -> None:
    broken = task_zip(instruction_dot_md="", tests__test_dot_sh="")
    detail = (await idle.upload(broken, status=400))["detail"]
    assert "instruction.md" in detail and "test.sh" in detail


async def test_two_tasks_in_one_archive_are_400(idle: Server) -> None:
    both = {f"{name}/{path}": text for name in ("a", "b") for path, text in _files(name).items()}
    assert "2 tasks" in (await idle.upload(zipped(both), status=400))["detail"]


def _files(name: str) -> dict[str, str]:
    return {
        "task.toml": f'schema_version = "1.4"\n[task]\nname = "tests/{name}"\n',
        "instruction.md": "Do it.\n",
        "environment/Dockerfile": "FROM debian:bookworm-slim\n",
        "solution/solve.sh": "true\n",
        "tests/test.sh": "true\n",
    }


async def test_over_the_size_cap_is_400_and_under_it_is_taken(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", None, upload_limit_mb=1) as server:
        noise = "".join(chr(33 + (n * n) % 90) for n in range(1_200_000))
        refused = await server.upload(task_zip(notes_dot_txt=noise), status=400)
        assert "1 MB" in refused["detail"]
        taken = await server.upload(task_zip(notes_dot_txt=noise[:1000]))
        assert [task["id"] for task in await server.get("/api/tasks")] == [taken["id"]]


async def test_parameters_out_of_range_are_refused(idle: Server) -> None:
    wrong: list[dict[str, Any]] = [{"num_runs": 0}, {"num_runs": 101}, {"num_runs": "many"}, {"name": ""}]
    for given in wrong:
        answer = await idle.upload(status=422, **given)
        assert isinstance(answer["detail"], str) and next(iter(given)) in answer["detail"]
    await idle.upload(num_runs=100)


async def test_an_unknown_agent_is_400(idle: Server) -> None:
    assert "no agent" in (await idle.upload(status=400, agent="nobody"))["detail"]
    assert "no agent" in (await idle.upload(status=400, agent="os:system"))["detail"]


async def test_the_name_of_an_upload_is_no_path(idle: Server, tmp_path: Path) -> None:
    name = f"../../{tmp_path.name}-escaped.zip"
    files = {"file": (name, task_zip(), "application/zip")}
    answer = await idle.http.post("/api/tasks", params={"name": "n", "agent": "oracle"}, files=files)
    assert answer.status_code == 200 and answer.json()["original_filename"] == name
    assert not list(tmp_path.parent.rglob("*-escaped*"))


async def test_the_list_is_newest_first_in_pages_and_by_status(server: Server) -> None:
    ids = [(await server.upload(name=f"t{number}", num_runs=1))["id"] for number in range(4)]
    await server.post(f"/api/tasks/{ids[1]}/execute-async")
    await server.ended(ids[1])

    async def listed(**query: Any) -> list[int]:
        tasks = await server.get("/api/tasks", **query)
        for task in tasks:
            assert_shape(task, TASK)
        return [task["id"] for task in tasks]

    assert await listed() == ids[::-1]
    assert await listed(skip=1, limit=2) == [ids[2], ids[1]]
    assert await listed(status="completed") == [ids[1]]
    assert await listed(status="pending") == [ids[3], ids[2], ids[0]]
    assert await listed(status="running") == await listed(status="failed") == await listed(status="cancelled") == []
    for wrong in ({"limit": 101}, {"limit": 0}, {"skip": -1}):
        await server.get("/api/tasks", expect=422, **wrong)


async def test_jobs_of_other_doors_are_no_tasks_here(idle: Server) -> None:
    mine = await idle.upload()
    [task] = await idle.installation.store.tasks.find()
    ref = TaskRef(name=task.name, digest=task.digest)
    other = await idle.installation.submission.submit(JobSpec(tasks=(ref,), agents=(AgentSpec(name="oracle"),)))
    assert [found["id"] for found in await idle.get("/api/tasks")] == [mine["id"]]
    await idle.get(f"/api/tasks/{other.id}", expect=404)
    assert (await idle.http.delete(f"/api/tasks/{other.id}")).status_code == 404
    assert (await idle.get("/api/stats"))["tasks"]["total"] == 1


async def test_unknown_ids_are_404(server: Server) -> None:
    task = await server.upload(num_runs=1)
    another = await server.upload(num_runs=1)
    [foreign] = (await server.get(f"/api/tasks/{another['id']}"))["runs"]
    base = f"/api/tasks/{task['id']}"
    for path in ("/api/tasks/9999", "/api/tasks/9999/runs", f"{base}/runs/9999", f"{base}/runs/9999/logs"):
        answer = await server.get(path, expect=404)
        assert set(answer) == {"detail"}
    await server.get(f"{base}/runs/{foreign['id']}", expect=404)
    await server.get(f"/api/tasks/{another['id']}/runs/{foreign['id']}")
    for call in ("retry", "start", "execute-async", "execute-one", "runs/1/execute", "runs/1/execute-async"):
        await server.post(f"/api/tasks/9999/{call}", status=404)
    for call in ("execute", "execute-async"):
        await server.post(f"{base}/runs/{foreign['id']}/{call}", status=404)
    assert (await server.http.delete("/api/tasks/9999")).status_code == 404


async def test_deleting_forgets_a_task_with_its_files(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", FakeRunner(files={"trial.log": b"kept"})) as server:
        task = await server.upload(num_runs=2)
        await server.post(f"/api/tasks/{task['id']}/execute-async")
        [run, _] = (await server.ended(task["id"]))["runs"]
        kept = [blob.key async for blob in server.installation.blobs.list(f"trials/{run['id']}")]
        assert kept
        answer = await server.http.delete(f"/api/tasks/{task['id']}")
        assert answer.status_code == 200 and set(answer.json()) == {"message"}
        await server.get(f"/api/tasks/{task['id']}", expect=404)
        assert [blob async for blob in server.installation.blobs.list(f"trials/{run['id']}")] == []


async def test_deleting_cancels_what_runs(tmp_path: Path) -> None:
    runner = FakeRunner(seconds=3600)
    async with serving(tmp_path / "home", runner) as server:
        task = await server.upload(num_runs=2)
        await server.post(f"/api/tasks/{task['id']}/execute-async")
        async with asyncio.timeout(LIMIT_SEC):
            while len(runner.orders) < 2:
                await asyncio.sleep(0.02)
            assert (await server.http.delete(f"/api/tasks/{task['id']}")).status_code == 200
        assert await server.installation.store.jobs.page(Page()) == []


async def test_statistics_count_tasks_and_runs(tmp_path: Path) -> None:
    results = (PASS, FAIL, Result(outcome=Outcome.ERROR, cause=Cause.VERIFIER, message="No reward."))

    def script(order: Order) -> Result:
        return results[order.trial.attempt - 1]

    async with serving(tmp_path / "home", FakeRunner(script)) as server:
        nothing = {"total": 0, "pending": 0, "running": 0, "completed": 0, "failed": 0}
        assert await server.get("/api/stats") == {"tasks": nothing, "runs": {"total": 0, "passed": 0, "failed": 0}}
        task = await server.upload(num_runs=3)
        await server.upload(num_runs=2)
        await server.post(f"/api/tasks/{task['id']}/execute-async")
        done = await server.ended(task["id"])
        assert (done["total_runs"], done["passed_runs"], done["failed_runs"], done["error_runs"]) == (3, 1, 2, 1)
        kept_apart = {name: done["statistics"][name] for name in ("passed", "failed", "error", "pass_rate")}
        assert kept_apart == {"passed": 1, "failed": 1, "error": 1, "pass_rate": 0.5}, "a fault is no failure"
        assert await server.get("/api/stats") == {
            "tasks": {**nothing, "total": 2, "pending": 1, "completed": 1},
            "runs": {"total": 5, "passed": 1, "failed": 1},
        }


async def test_a_repeated_upload_with_the_same_key_makes_one_task(idle: Server) -> None:
    async def send(name: str) -> int:
        files = {"file": ("t.zip", task_zip(), "application/zip")}
        headers = {"Idempotency-Key": "k1"}
        answer = await idle.http.post("/api/tasks", params={"name": name}, files=files, headers=headers)
        return answer.json()["id"] if answer.status_code == 200 else -answer.status_code

    first = await send("one")
    assert await send("one") == first > 0
    assert await send("another") == -409
    assert len(await idle.get("/api/tasks")) == 1


async def test_how_results_are_told(tmp_path: Path) -> None:
    """The mapping of outcomes: passed, failed, timeout for an agent that ran out of time, error for all else."""
    tests = tuple(
        TestResult(name=f"test_{n}", status=status)
        for n, status in enumerate((TestStatus.PASSED, TestStatus.PASSED, TestStatus.FAILED, TestStatus.ERROR))
    )
    late = FAIL.model_copy(update={"marks": (Mark.AGENT_TIMEOUT,), "message": "AgentTimeoutError", "tests": tests})
    in_time = PASS.model_copy(update={"marks": (Mark.AGENT_TIMEOUT,)})
    broken = Result(outcome=Outcome.ERROR, cause=Cause.VERIFIER, message="The verifier gave no valid reward.")
    results = (PASS, FAIL, late, in_time, broken)
    async with serving(tmp_path / "home", FakeRunner(lambda order: results[order.trial.attempt - 1])) as server:
        task = await server.upload(num_runs=5)
        await server.post(f"/api/tasks/{task['id']}/execute-async")
        done = await server.ended(task["id"])
        assert done["status"] == "completed" and done["completed_at"] and done["started_at"]
        runs = done["runs"]
        assert [run["status"] for run in runs] == ["passed", "failed", "timeout", "passed", "error"]
        assert [(run["tests_total"], run["tests_passed"], run["tests_failed"]) for run in runs[2:3]] == [(4, 2, 2)]
        assert runs[4]["error_message"] == broken.message and runs[0]["error_message"] is None
        for run in runs:
            assert_shape(run, RUN)
            assert run["started_at"] and run["completed_at"] and run["duration_seconds"] is not None


async def test_a_task_without_any_graded_run_says_so(tmp_path: Path) -> None:
    """It is completed, because that is what clients of this API wait for; its counts and its runs tell the rest."""
    broken = Result(outcome=Outcome.ERROR, cause=Cause.AGENT, message="It crashed.")
    async with serving(tmp_path / "home", FakeRunner(lambda order: broken)) as server:
        task = await server.upload(num_runs=1)
        await server.post(f"/api/tasks/{task['id']}/execute-async")
        done = await server.ended(task["id"])
        assert (done["status"], done["passed_runs"], done["failed_runs"], done["error_runs"]) == ("completed", 0, 1, 1)
        assert [(run["status"], run["error_message"]) for run in done["runs"]] == [("error", "It crashed.")]
        assert done["statistics"]["pass_rate"] is None
        assert [found["id"] for found in await server.get("/api/tasks", status="completed")] == [task["id"]]
        assert await server.get("/api/tasks", status="failed") == []
