"""Jobs over HTTP: planned, started once, listed, cancelled, resumed, retried, deleted."""

from __future__ import annotations

import csv
import json
import shlex
from datetime import timedelta
from typing import Any

import pytest

from seatrial.domain.model_calls.budget import WITHOUT_CAP, Amount, Scope
from seatrial.domain.model_calls.budget_slices import SliceReport
from seatrial.domain.result import Result
from seatrial.domain.trial import Cause, Outcome
from seatrial.testing.fake_runner import FAIL, PASS, FakeRunner
from tests.integration.api.service import Api

CANARY = "sk-canary-7f3a9b"


async def test_the_whole_matrix(api: Api) -> None:
    await api.add_tasks("one", "two")
    job = await api.post(
        "/jobs",
        {
            "name": "matrix",
            "tasks": ["one", "two"],
            "agents": [{"name": "oracle"}, {"name": "terminus-2", "options": {"temperature": 0.2}}],
            "models": ["scripted/shell", "scripted/give-up"],
            "attempts": 3,
            "concurrency": 2,
            "labels": {"team": "red"},
        },
        status=201,
    )
    assert job["counts"]["queued"] == job["counts"]["total"] == 2 * 3 * 3
    assert job["agents"] == ["oracle", "terminus-2 / scripted/shell", "terminus-2 / scripted/give-up"]
    detail = await api.get(f"/jobs/{job['id']}")
    assert detail["spec"]["concurrency"] == 2
    assert detail["spec"]["labels"] == {"team": "red"}
    assert detail["status"] == "pending"


async def test_what_was_spent_is_shown_by_job_and_day(local_api: Api) -> None:
    await local_api.add_tasks("one")
    budget = {"job": {"dollars": 5.0}, "trial": {"calls": 30}}
    job = await local_api.post("/jobs", {"tasks": ["one"], "budget": budget}, status=201)
    store, now = local_api.installation.store, local_api.installation.clock()
    scopes = [Scope.of_job(job["id"]), Scope.of_day(now)]
    spent, under_way = Amount.of(0.25, 1000, 2), Amount.of(0.05, 100, 1)
    reports = [SliceReport(scope, "worker", 1, WITHOUT_CAP, spent, in_flight=under_way) for scope in scopes]
    await store.budgets.exchange(reports, timedelta(seconds=30), now)
    expected = {
        "spent": {"dollars": 0.25, "tokens": 1000, "calls": 2},
        "in_flight": {"dollars": 0.05, "tokens": 100, "calls": 1},
    }
    detail = await local_api.get(f"/jobs/{job['id']}")
    assert detail["spending"] == expected
    assert detail["spec"]["budget"]["job"]["dollars"] == 5.0 and detail["spec"]["budget"]["trial"]["calls"] == 30
    today = await local_api.get("/budget")
    assert today["spending"] == expected and today["cap"]["dollars"] is None
    other = await local_api.post("/jobs", {"tasks": ["one"]}, status=201)
    assert (await local_api.get(f"/jobs/{other['id']}"))["spending"]["spent"]["calls"] == 0


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"tasks": ["unknown"]}, "tasks"),
        ({"tasks": ["sha256:" + "1" * 64]}, "tasks"),
        ({"dataset": "none@3"}, "dataset"),
        ({}, "tasks"),
        ({"tasks": ["one"], "agents": [{"name": "nobody"}]}, "agent"),
        ({"tasks": ["one"], "agents": [{"name": "terminus-2"}]}, "model"),
        ({"tasks": ["one"], "sandbox": "cloud"}, "sandbox"),
        ({"tasks": ["one"], "attempts": 0}, "attempts"),
        ({"tasks": ["one"], "selection": {"exclude": ["*"]}}, "tasks"),
        ({"tasks": ["one"], "surprise": 1}, "surprise"),
        ({"tasks": ["one"], "budget": {"job": {"dollars": -1}}}, "budget.job.dollars"),
        (
            {
                "tasks": ["one"],
                "agents": [{"name": "terminus-2", "model": "openai/unpriced"}],
                "budget": {"trial": {"dollars": 1}},
            },
            "agents.0.model",
        ),
        ({"tasks": ["one"], "agents": [{"name": "oracle", "env": {"OPENAI_API_KEY": CANARY}}]}, "agents.0.env"),
        ({"tasks": ["one"], "options": {"api_key": CANARY}}, "options"),
    ],
)
async def test_what_is_wrong_is_said_with_the_field(local_api: Api, content: Any, field: str) -> None:
    await local_api.add_tasks("one")
    answer = await local_api.post("/jobs", content, status=422)
    assert answer["error"]["field"] == field
    assert CANARY not in json.dumps(answer)
    assert (await local_api.get("/jobs"))["items"] == []
    assert (await local_api.post("/jobs", {"tasks": ["one"]}, status=201))["id"] == 1


async def test_a_missing_key_is_one_sentence_and_a_given_one_is_sealed(local_api: Api) -> None:
    await local_api.add_tasks("one")
    wanted = {"tasks": ["one"], "agents": [{"name": "terminus-2", "model": "openai/gpt-5.1"}]}
    refused = await local_api.post("/jobs", wanted, status=400)
    assert refused["error"]["code"] == "missing_key"
    estimate = await local_api.post("/jobs/estimate", wanted)
    assert "OPENAI_API_KEY" in estimate["warnings"][0]
    headers = {"X-Provider-Key": f"OPENAI_API_KEY={CANARY}"}
    job = await local_api.post("/jobs", wanted, status=201, headers=headers)
    sealed = await local_api.installation.store.jobs.sealed_keys(job["id"])
    assert sealed and CANARY not in sealed
    assert CANARY not in json.dumps(await local_api.get(f"/jobs/{job['id']}"))
    await local_api.post(f"/jobs/{job['id']}/cancel")
    assert await local_api.installation.store.jobs.sealed_keys(job["id"]) is None
    assert (await local_api.post(f"/jobs/{job['id']}/resume", status=400))["error"]["code"] == "missing_key"
    assert await local_api.post(f"/jobs/{job['id']}/resume", headers=headers) == {"queued": 1}
    assert await local_api.installation.store.jobs.sealed_keys(job["id"]) is not None


async def test_the_same_key_creates_once(api: Api) -> None:
    await api.add_tasks("one")
    wanted, headers = {"tasks": ["one"], "attempts": 2}, {"Idempotency-Key": "k-1"}
    first = await api.post("/jobs", wanted, status=201, headers=headers)
    assert (await api.post("/jobs", wanted, status=201, headers=headers))["id"] == first["id"]
    other = {**wanted, "attempts": 3}
    assert (await api.post("/jobs", other, status=409, headers=headers))["error"]["code"] == "conflict"
    assert (await api.post("/jobs", wanted, status=201, headers={"Idempotency-Key": "k-2"}))["id"] != first["id"]
    assert len((await api.get("/jobs"))["items"]) == 2


async def test_lists_with_filters_pages_and_scores(api: Api) -> None:
    await api.add_tasks("one", "two")
    for number in range(5):
        await api.post("/jobs", {"name": f"Job {number}", "tasks": ["one"], "attempts": 2}, status=201)
    await api.work_off(FakeRunner(results={"one": (FAIL,)}))
    await api.post("/jobs", {"name": "waits", "tasks": ["two"]}, status=201)

    page = await api.get("/jobs", params={"limit": 4, "include": "score"})
    assert [item["id"] for item in page["items"]] == [6, 5, 4, 3]
    assert page["items"][0]["status"] == "pending"
    assert page["items"][0]["score"]["value"] is None
    ended = page["items"][1]
    assert ended["status"] == "completed"
    assert ended["counts"]["failed"] == 2
    assert ended["score"]["value"] == 0.0
    assert ended["score"]["coverage"] == 1.0
    assert ended["started_at"] <= ended["ended_at"]
    assert [item["id"] for item in (await api.get("/jobs", params={"cursor": page["next"]}))["items"]] == [2, 1]
    for params, ids in (
        ({"status": "pending"}, [6]),
        ({"name": "job 3"}, [4]),
        ({"task": "two"}, [6]),
        ({"agent": "nop"}, []),
        ({"origin": "seatrial", "limit": "1"}, [6]),
    ):
        assert [item["id"] for item in (await api.get("/jobs", params=params))["items"]] == ids, params
    assert (await api.get("/jobs", 422, params={"cursor": "x"}))["error"]["field"] == "cursor"


async def test_a_retried_job_is_counted_anew(api: Api) -> None:
    """What is remembered of an ended job must not outlive its end."""
    await api.add_tasks("one")
    job = await api.post("/jobs", {"tasks": ["one"]}, status=201)
    await api.work_off(FakeRunner(results={"one": (FAIL,)}))
    path = f"/jobs/{job['id']}"
    assert (await api.get(path))["score"]["value"] == 0.0
    assert await api.post(f"{path}/retry", {}) == {"queued": 0}
    await api.post(f"{path}/retry", {"outcomes": ["failed"]}, status=422)
    [trial] = (await api.get(f"{path}/trials"))["items"]
    await api.post(f"{path}/retry", {"trials": [trial["id"]]}, status=409)
    assert len((await api.post(f"{path}/attempts", {"outcomes": ["failed"]}, status=201))["trials"]) == 1
    assert (await api.get(path))["status"] == "running"
    await api.work_off(FakeRunner(results={"one": (PASS,)}))
    again = await api.get(path)
    assert (again["score"]["value"], again["counts"]["passed"], again["counts"]["failed"]) == (0.0, 0, 1)
    assert again["added"]["passed"] == 1
    grid = (await api.get(f"{path}/grid"))["tasks"][0]
    assert ([len(cells) for cells in grid["cells"]], [len(cells) for cells in grid["added"]]) == ([1], [1])
    table = csv.DictReader((await api.ask("GET", f"{path}/trials.csv", 200)).text.splitlines())
    assert [row["reruns"] for row in table] == [str(trial["id"]), ""]


async def test_cancel_resume_and_delete_with_files(api: Api) -> None:
    await api.add_tasks("one")
    job = await api.post("/jobs", {"tasks": ["one"], "attempts": 3}, status=201)
    path = f"/jobs/{job['id']}"
    assert (await api.ask("DELETE", path, 409)).json()["error"]["code"] == "conflict"
    assert await api.post(f"{path}/cancel") == {"cancelled": 3}
    assert (await api.get(path))["status"] == "cancelled"
    assert await api.post(f"{path}/resume") == {"queued": 3}
    await api.work_off(FakeRunner(files={"agent/out.txt": b"hello"}))
    assert (await api.get(path))["counts"]["passed"] == 3
    assert await api.post(f"{path}/resume") == {"queued": 0}
    assert len([blob async for blob in api.installation.blobs.list("trials")]) == 3
    await api.ask("DELETE", path, 204)
    await api.get(path, 404)
    assert (await api.get("/trials"))["items"] == []
    assert [blob async for blob in api.installation.blobs.list("trials")] == []


async def test_retry_takes_errors_and_named_trials(api: Api) -> None:
    await api.add_tasks("one", "two")
    job = await api.post("/jobs", {"tasks": ["one", "two"], "retry": {"max_attempts": 1}}, status=201)
    error = Result(outcome=Outcome.ERROR, cause=Cause.SANDBOX)
    await api.work_off(FakeRunner(results={"one": (error, PASS)}))
    [failed] = (await api.get(f"/jobs/{job['id']}/trials", params={"outcome": "error"}))["items"]
    assert failed["cause"] == "sandbox"
    assert await api.post(f"/jobs/{job['id']}/retry", {"trials": []}) == {"queued": 0}
    assert await api.post(f"/jobs/{job['id']}/retry", {"trials": [failed["id"]]}) == {"queued": 1}
    await api.work_off(FakeRunner(results={"one": (error, PASS)}))
    detail = await api.get(f"/trials/{failed['id']}")
    assert [a_try["outcome"] for a_try in detail["attempts"]] == ["error", "passed"]


async def test_an_estimate_learns_from_what_ran(api: Api) -> None:
    await api.add_tasks("one", "two")
    wanted = {"tasks": ["one", "two"], "attempts": 4, "name": "a job"}
    before = await api.post("/jobs/estimate", wanted)
    assert (before["trials"], before["seconds"], before["based_on"]) == (8, None, 0)
    assert any("No worker" in warning for warning in before["warnings"])
    await api.post("/jobs", {**wanted, "attempts": 1}, status=201)
    await api.work_off(FakeRunner(seconds=0.05))
    after = await api.post("/jobs/estimate", wanted)
    assert after["seconds"] == pytest.approx(0.4)
    assert after["cost_usd"] == 0.0
    assert after["based_on"] == 2
    assert 0 < after["detectable_difference"] < 1
    assert shlex.split(after["command"]) == [
        *("seatrial", "run", "-t", "one", "-t", "two", "-a", "oracle", "-k", "4", "--name", "a job")
    ]
    curl = shlex.split(after["curl"])
    assert curl[:4] == ["curl", "-X", "POST", "http://127.0.0.1:8000/api/v1/jobs"]
    assert (await api.post("/jobs", json.loads(curl[-1]), status=201))["counts"]["total"] == 8


async def test_too_many_trials_for_one_job(local_api: Api) -> None:
    await local_api.add_tasks("one")
    agents = [{"name": "oracle", "env": {"N": str(number)}} for number in range(101)]
    wanted = {"tasks": ["one"], "agents": agents, "attempts": 1000}
    assert (await local_api.post("/jobs", wanted, status=422))["error"]["field"] == "attempts"
    assert (await local_api.post("/jobs/estimate", {**wanted, "attempts": 900}))["trials"] == 90_900
