"""Trials over HTTP: lists, details, files in ranges, logs, trajectories, reports."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.result import Result, TestResult, TestStatus
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome
from seatrial.ports.runner import Order
from seatrial.ports.store import Heartbeat
from seatrial.testing.fake_runner import FakeRunner
from tests.integration.api.service import Api

LOG = b"".join(b"line %04d\n" % number for number in range(1000))


def trajectory(*commands: str) -> bytes:
    steps = [{"step_id": 1, "source": "user", "message": "Write 42."}]
    for number, command in enumerate(commands, start=2):
        calls = [{"tool_call_id": str(number), "function_name": "bash", "arguments": {"command": command}}]
        steps.append({"step_id": number, "source": "agent", "message": "", "tool_calls": calls})
    return json.dumps({"schema_version": "ATIF-v1.6", "steps": steps}).encode()


FILES = {
    "trial.log": LOG,
    "agent/trajectory.json": trajectory("ls", "cat x"),
    "agent/recording.cast": b'{"version": 2}\n[0.1, "o", "hi"]\n',
    "agent/page.html": b"<script>alert(1)</script>",
    "verifier/test-stdout.txt": b"1 passed\n",
    "artifacts/picture.svg": b"<svg onload='alert(1)'/>",
}


def graded(order: Order) -> Result:
    """The first repetition passes, the second fails one test."""
    passed = order.trial.attempt == 1
    tests = (
        TestResult(name="test_a", status=TestStatus.PASSED),
        TestResult(name="test_b", status=TestStatus.PASSED if passed else TestStatus.FAILED),
    )
    outcome = Outcome.PASSED if passed else Outcome.FAILED
    return Result(outcome=outcome, rewards={"reward": float(passed)}, tests=tests)


async def a_job(api: Api, attempts: int = 2) -> int:
    await api.add_tasks("one", "two")
    job = await api.post("/jobs", {"tasks": ["one", "two"], "attempts": attempts}, status=201)
    await api.work_off(FakeRunner(graded, files=FILES))
    return int(job["id"])


async def test_lists_and_details(api: Api) -> None:
    job_id = await a_job(api)
    page = await api.get(f"/jobs/{job_id}/trials", params={"limit": 3})
    assert [item["id"] for item in page["items"]] == [4, 3, 2]
    assert [item["id"] for item in (await api.get("/trials", params={"cursor": page["next"]}))["items"]] == [1]
    failed = await api.get("/trials", params=[("outcome", "failed"), ("outcome", "error"), ("task", "one")])
    assert [item["repeat"] for item in failed["items"]] == [2]
    assert (await api.get("/trials", params={"state": "running"}))["items"] == []
    detail = await api.get("/trials/1")
    assert (detail["outcome"], detail["reward"], detail["task"]["name"]) == ("passed", 1.0, "one")
    assert detail["agent_spec"]["name"] == "oracle"
    assert [a_try["number"] for a_try in detail["attempts"]] == [1]
    assert [test["status"] for test in (await api.get("/trials/4/tests"))["items"]] == ["passed", "failed"]
    await api.get("/trials/99", 404)
    await api.get("/jobs/99/trials", 404)


async def test_files_come_in_ranges_and_never_run(local_api: Api) -> None:
    await a_job(local_api)
    listed = await local_api.get("/trials/1/files")
    assert {item["path"] for item in listed["items"]} == set(FILES)
    whole = await local_api.ask("GET", "/trials/1/files/trial.log", 200)
    assert whole.content == LOG
    assert whole.headers["accept-ranges"] == "bytes"
    for header, status, content in (
        ("bytes=0-9", 206, LOG[:10]),
        ("bytes=9990-", 206, LOG[9990:]),
        ("bytes=-5", 206, LOG[-5:]),
        ("bytes=5-3", 200, LOG),
        ("lines=1-2", 200, LOG),
        (f"bytes={len(LOG)}-", 416, b""),
    ):
        part = await local_api.ask("GET", "/trials/1/files/trial.log", status, headers={"Range": header})
        assert part.content == content, header
    for path in ("agent/page.html", "artifacts/picture.svg"):
        answer = await local_api.ask("GET", f"/trials/1/files/{path}", 200)
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]


async def test_files_that_were_removed_are_not_found(local_api: Api) -> None:
    """Not answered with 200 and a body that is cut."""
    await a_job(local_api)
    blobs = local_api.installation.blobs
    paths = ("files/trial.log", "logs/trial.log", "trajectory", "recording")
    for path in paths:
        await local_api.ask("GET", f"/trials/1/{path}", 200)
    await blobs.delete("trials/1")
    for path in paths:
        await local_api.ask("GET", f"/trials/1/{path}", 404)
        await local_api.ask("GET", f"/trials/1/{path}", 404, headers={"Range": "bytes=0-1"})
    await local_api.ask("GET", "/trials/2/files/trial.log", 200)


async def test_what_was_left_out_is_listed(local_api: Api) -> None:
    many = {f"agent/{number:04}": b"x" for number in range(300)}
    await a_job(local_api)
    assert (await local_api.get("/trials/1/files"))["left_out"] is None
    job = await local_api.post("/jobs", {"tasks": ["one"]}, status=201)
    [queued] = (await local_api.get(f"/jobs/{job['id']}/trials"))["items"]
    await local_api.work_off(FakeRunner(files=many | {f"agent/{'x/' * 70}deep": b"x"}))
    listed = await local_api.get(f"/trials/{queued['id']}/files")
    assert {item["path"] for item in listed["items"]} == set(many)
    assert listed["left_out"]["count"] == 1 and "depth of 64" in listed["left_out"]["examples"][0]["reason"]
    detail = await local_api.get(f"/trials/{queued['id']}")
    assert len(detail["result"]["files"]) == 200 and detail["result"]["file_listing"]["count"] == 300
    await local_api.ask("GET", f"/trials/{queued['id']}/files/agent/0299", 200)


async def test_no_spelling_of_a_path_leads_out_of_a_trial(local_api: Api) -> None:
    await a_job(local_api)
    spellings = ("../2/trial.log", "%2e%2e/2/trial.log", "..%2f..%2f2%2f1%2ftrial.log", "/etc/passwd", "%2e/trial.log")
    for path in (*spellings, "agent/%2e%2e/trial.log", "agent//trajectory.json", "trial.log%00", "TRIAL.LOG"):
        await local_api.ask("GET", f"/trials/1/files/{path}", 404)
        await local_api.ask("GET", f"/trials/1/logs/{path}", 404)
    await local_api.ask("GET", "/trials/1/files/agent/trajectory.json", 200)


async def test_logs_are_read_from_either_end(local_api: Api) -> None:
    await a_job(local_api)
    names = [item["name"] for item in (await local_api.get("/trials/1/logs"))["items"]]
    assert "trial.log" in names and "verifier/test-stdout.txt" in names
    assert "artifacts/picture.svg" not in names
    for params, content in (
        ({}, LOG),
        ({"offset": 10, "limit": 10}, LOG[10:20]),
        ({"offset": -20}, LOG[-20:]),
        ({"offset": -20, "limit": 5}, LOG[-20:-15]),
        ({"offset": 10**9}, b""),
        ({"offset": -(10**9), "limit": 3}, LOG[:3]),
    ):
        answer = await local_api.ask("GET", "/trials/1/logs/trial.log", 200, params=params)
        assert answer.content == content, params
        assert answer.headers["x-total-size"] == str(len(LOG))
        assert answer.headers["content-type"].startswith("text/plain")


async def test_trajectory_recording_and_what_is_not_there(local_api: Api) -> None:
    await a_job(local_api)
    assert len((await local_api.get("/trials/1/trajectory"))["steps"]) == 3
    recording = await local_api.ask("GET", "/trials/1/recording", 200)
    assert recording.headers["content-type"].startswith("application/x-asciicast")
    await local_api.get("/trials/1/files", 404, params={"attempt": 2})
    job = await local_api.post("/jobs", {"tasks": ["one"]}, status=201)
    [queued] = (await local_api.get(f"/jobs/{job['id']}/trials"))["items"]
    assert "no ended try" in (await local_api.get(f"/trials/{queued['id']}/files", 404))["error"]["message"]
    await local_api.work_off(FakeRunner())
    await local_api.get(f"/trials/{queued['id']}/trajectory", 404)
    await local_api.get(f"/trials/{queued['id']}/recording", 404)


async def test_one_trial_is_cancelled_and_retried_by_itself(api: Api) -> None:
    await api.add_tasks("one")
    job = await api.post("/jobs", {"tasks": ["one"], "attempts": 2}, status=201)
    assert await api.post("/trials/1/cancel") == {"cancelled": 1}
    assert await api.post("/trials/1/cancel") == {"cancelled": 0}
    assert (await api.get(f"/jobs/{job['id']}"))["counts"]["queued"] == 1
    assert await api.post("/trials/1/retry") == {"queued": 1}
    await api.work_off()
    assert (await api.get(f"/jobs/{job['id']}"))["counts"]["passed"] == 2
    assert "final" in (await api.ask("POST", "/trials/1/retry", 409)).json()["error"]["message"]
    assert await api.post("/trials/1/attempts", status=201) == {"trials": [3]}
    assert (await api.get("/trials/3"))["reruns"] == 1
    await api.ask("POST", "/trials/3/attempts", 409)
    await api.post("/trials/99/attempts", status=404)
    await api.post("/trials/99/cancel", status=404)
    await api.post("/trials/99/retry", status=404)


async def test_report_grid_and_table(api: Api) -> None:
    job_id = await a_job(api)
    report = await api.get(f"/jobs/{job_id}/report", params={"tests": True})
    assert report["configurations"][0]["leaderboard"]["value"] == 0.5
    assert {line["test"] for line in report["tests"]} == {"test_a", "test_b"}
    grid = await api.get(f"/jobs/{job_id}/grid")
    assert grid["configurations"] == ["oracle"]
    assert [row["name"] for row in grid["tasks"]] == ["one", "two"]
    assert [cell["outcome"] for cell in grid["tasks"][0]["cells"][0]] == ["passed", "failed"]
    table = await api.ask("GET", f"/jobs/{job_id}/trials.csv", 200)
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert [row["outcome"] for row in rows] == ["failed", "failed", "passed", "passed"]
    assert rows[0]["reward"] == "0.0"


async def test_jobs_are_compared(api: Api) -> None:
    first = await a_job(api)
    await api.post("/jobs", {"tasks": ["one", "two"], "attempts": 2}, status=201)
    await api.work_off()
    [found] = (await api.get("/compare", params={"baseline": first, "other": "2:oracle"}))["items"]
    assert found["a_minus_b"] == -0.5
    assert found["verdict"]
    assert (await api.get("/compare", 422, params={"baseline": first, "other": "x"}))["error"]["field"] == "other"
    assert (await api.get("/compare", 422, params={"baseline": f"{first}:nobody"}))["error"]["field"] == "baseline"
    await api.get("/compare", 404, params={"baseline": first, "other": "99"})
    row = (await api.get("/compare", params={"baseline": first, "other": "2:oracle"}))["matrix"][0]
    assert row["cells"][0]["b_minus_a"] is not None
    sides = {"baseline": f"{first}:oracle", "other": "2:oracle"}
    pairs = await api.get("/compare/pairs", params={**sides, "task": row["task"]})
    assert [pair["a"]["attempt"] for pair in pairs["pairs"]] == [pair["b"]["attempt"] for pair in pairs["pairs"]]
    await api.get("/compare/pairs", 404, params={**sides, "task": "nothing"})
    told = await api.get("/compare/circumstances", params=sides)
    assert [side["job"] for side in told["sides"]] == [1, 2]
    assert {"agent", "sandbox asked for", "valid trials"} <= {trait["name"] for trait in told["traits"]}


async def test_where_two_trials_went_different_ways(local_api: Api) -> None:
    await a_job(local_api)
    job = await local_api.post("/jobs", {"tasks": ["one"]}, status=201)
    other = {"agent/trajectory.json": trajectory("ls", "cat y", "exit")}
    await local_api.work_off(FakeRunner(graded, files=other))
    [trial] = (await local_api.get(f"/jobs/{job['id']}/trials"))["items"]
    found = await local_api.get(f"/trials/3/diverges-from/{trial['id']}")
    assert found["step"] == 2
    assert ("cat x" in found["left"]["actions"][0], "cat y" in found["right"]["actions"][0]) == (True, True)
    assert [(flip["name"], flip["left"], flip["right"]) for flip in found["tests"]] == [("test_b", "failed", "passed")]
    same = await local_api.get("/trials/1/diverges-from/3")
    assert same["step"] is None
    rows = found["alignment"]["rows"]
    assert (rows[found["alignment"]["first_difference"]]["same"], found["alignment"]["matched"]) == (False, True)
    assert same["alignment"]["first_difference"] is None
    await local_api.get("/trials/1/diverges-from/99", 404)


async def test_the_installation_in_numbers(api: Api) -> None:
    await a_job(api)
    await api.post("/jobs", {"tasks": ["one"], "attempts": 3}, status=201)
    stats = await api.get("/stats")
    assert stats["jobs"]["completed"] == 1
    assert (stats["trials"]["passed"], stats["trials"]["queued"], stats["trials"]["total"]) == (2, 3, 7)
    queue = await api.get("/queue")
    assert (queue["queued"], queue["running"], queue["ended_last_minute"]) == (3, 0, 4)
    assert [worker["running"] for worker in (await api.get("/workers"))["items"]] in ([], [0])
    agents = {agent["name"]: agent for agent in (await api.get("/agents"))["items"]}
    assert agents["oracle"]["takes_model"] is False
    models = {model["id"]: model for model in (await api.get("/models"))["items"]}
    assert models["scripted/shell"]["ready"] is True
    assert models["openai/gpt-5.1"]["keys"] == ["OPENAI_API_KEY"]
    assert [item["default"] for item in (await api.get("/sandboxes"))["items"]].count(True) == 1
    limits = await api.get("/limits")
    assert (limits["sandbox"], limits["default_memory_mb"], limits["upload_limit_mb"]) == ("oci", 2048, 256)


async def test_a_worker_tells_where_it_can_run_trials_and_why_it_does_not(api: Api) -> None:
    store, now = api.installation.store, api.installation.clock()
    beat = Heartbeat(
        worker="w:1:1", host="w", pid=1, capacity=4, started_at=now, sandboxes=("oci",), paused="The disk is full."
    )
    await store.workers.beat(beat, now)
    [worker] = [worker for worker in (await api.get("/workers"))["items"] if worker["worker"] == "w:1:1"]
    assert (worker["alive"], worker["sandboxes"], worker["paused"]) == (True, ["oci"], "The disk is full.")


async def test_who_runs_what_in_which_sandbox(api: Api) -> None:
    """What the job asked for; for ``auto``, the best of what works where it runs; else nobody knows yet."""
    store, now = api.installation.store, api.installation.clock()
    [digest, *_] = await api.add_tasks("one")
    ref = TaskRef(name="one", digest=digest)
    for sandbox in ("auto", "docker", "auto"):
        spec = JobSpec(tasks=(ref,), agents=(AgentSpec(name="oracle"),), sandbox=sandbox)
        await store.jobs.create(spec, list(plan(spec)), now)
    told = Heartbeat(worker="w:1:1", host="w", pid=1, capacity=4, started_at=now, sandboxes=("oci", "docker"))
    await store.workers.beat(told, now)
    assert (await api.get("/queue/running"))["items"] == []
    for worker, number in (("w:1:1", 2), ("silent:2:2", 1)):
        assert len(await store.trials.claim(worker, timedelta(minutes=1), number, now)) == number
    first = await api.get("/queue/running", params={"limit": 2})
    rest = await api.get("/queue/running", params={"limit": 2, "cursor": first["next"]})
    found = [(item["worker"], item["sandbox"]) for item in (*first["items"], *rest["items"])]
    assert found == [("silent:2:2", None), ("w:1:1", "docker"), ("w:1:1", "oci")]
    assert rest["next"] is None
