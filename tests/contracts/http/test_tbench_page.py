"""TBench Runner's own page against us: the requests that it makes from another origin, and the fields that it reads.

Its page was run in a browser against the service; this is what it sent and what it did with the answers. It reads every
error from ``detail`` and shows it, divides by ``total_runs``, looks each status up in a table of its own, asks for a
run's log once, and goes on asking for a task as long as that is ``running``.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from seatrial.domain.output import NewOutput, OutputStream
from seatrial.domain.result import Result
from seatrial.domain.trial import Cause, Outcome
from seatrial.testing.fake_runner import FAIL, PASS, FakeRunner
from tests.contracts.http.server import Server, serving, task_zip, zipped
from tests.contracts.http.test_tbench_tasks import RUN, TASK, assert_shape
from tests.waiting import LIMIT_SEC

PAGE = "http://localhost:3000"
KEY = "sk-or-page-canary-0123456789"
TASK_STATES = {"pending", "running", "completed", "failed", "cancelled"}
RUN_STATES = {"pending", "running", "passed", "failed", "error", "timeout"}
BROWSER = {"Accept": "application/json, text/plain, */*", "Origin": PAGE, "Referer": f"{PAGE}/"}


class RunnerPage:
    """What its page does, each with the headers that the browser adds."""

    def __init__(self, server: Server, origin: str = PAGE) -> None:
        self._http = server.http
        self._headers = {**BROWSER, "Origin": origin}

    async def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        """The browser asks first where a form could not have done the same."""
        if method == "DELETE":
            ahead = {**self._headers, "Access-Control-Request-Method": method}
            allowed = await self._http.options(path, headers=ahead)
            if method not in allowed.headers.get("access-control-allow-methods", ""):
                return allowed
        return await self._http.request(method, path, headers=self._headers, **given)

    async def read(self, method: str, path: str, status: int = 200, **given: Any) -> Any:
        """As far as the browser lets the page read it."""
        answer = await self.ask(method, path, **given)
        assert (answer.status_code, answer.headers.get("access-control-allow-origin")) == (status, PAGE), answer.text
        return answer.json()

    async def upload(self, status: int = 200, archive: bytes | None = None, **fields: Any) -> dict[str, Any]:
        query = {"name": "hello task", "model": "openrouter/openai/gpt-5.2", "agent": "oracle", "harness": "harbor"}
        files = {"file": ("hello-task.zip", archive or task_zip(), "application/zip")}
        answer = await self.read("POST", "/api/tasks", status, params={**query, "num_runs": "3", **fields}, files=files)
        return dict(answer)

    async def execute(self, task_id: int, status: int = 200, key: str = KEY) -> dict[str, Any]:
        """Without a body, and the key where we would rather not have it."""
        query = {"openrouter_api_key": key, "timeout_seconds": "1200"}
        return dict(await self.read("POST", f"/api/tasks/{task_id}/execute-async", status, params=query))


def check_shown(task: dict[str, Any]) -> None:
    """Nothing that its page shows of a task comes out as NaN, undefined or an unknown status."""
    assert_shape(task, TASK)
    assert task["status"] in TASK_STATES and task["model"].split("/")
    assert 0 <= task["passed_runs"] + task["failed_runs"] <= task["total_runs"] == task["num_runs"] > 0
    age = datetime.now(UTC) - datetime.fromisoformat(task["created_at"])
    assert 0 <= age.total_seconds() < 600, "a time without its zone is hours away in most browsers"
    for run in task.get("runs", []):
        assert_shape(run, RUN)
        assert run["status"] in RUN_STATES
        assert run["tests_passed"] + run["tests_failed"] <= run["tests_total"]


async def test_a_visit_from_upload_to_delete(tmp_path: Path) -> None:
    results = (PASS, FAIL, Result(outcome=Outcome.ERROR, cause=Cause.VERIFIER, message="No reward."))
    runner = FakeRunner(lambda order: results[order.trial.attempt - 1])
    async with serving(tmp_path / "home", runner, cors_origins=PAGE) as server:
        page = RunnerPage(server)
        assert await page.read("GET", "/api/tasks") == []
        assert await page.read("GET", "/api/models") and await page.read("GET", "/api/agents")
        made = await page.upload()
        base = f"/api/tasks/{made['id']}"
        for shown in (made, *await page.read("GET", "/api/tasks"), await page.read("GET", base)):
            check_shown(shown)
            assert shown["status"] == "pending"
        assert (await page.execute(made["id"]))["runs_queued"] == 3
        running = await page.read("GET", base)
        check_shown(running)
        assert running["status"] != "pending", "it would never ask again"
        await server.ended(made["id"])
        done = await page.read("GET", base)
        check_shown(done)
        assert [run["status"] for run in done["runs"]] == ["passed", "failed", "error"]
        assert done["runs"][2]["error_message"] == "No reward."
        numbers = await page.read("GET", "/api/stats")
        assert (numbers["tasks"]["running"], numbers["runs"]["passed"], numbers["runs"]["total"]) == (0, 1, 3)
        assert (await page.read("POST", f"{base}/retry"))["task_id"] == made["id"]
        again = await page.read("GET", base)
        check_shown(again)
        assert (again["status"], again["passed_runs"], again["failed_runs"]) == ("pending", 0, 0)
        await page.read("DELETE", base)
        assert await page.read("GET", "/api/tasks") == []
        assert (await page.read("GET", base, 404))["detail"] == "Task not found"


async def test_a_page_that_was_not_listed_gets_nothing_done(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", FakeRunner(), cors_origins=PAGE) as server:
        task = await RunnerPage(server).upload()
        foreign = RunnerPage(server, "http://localhost:3001")
        for method, path in (
            ("GET", "/api/tasks"),
            ("POST", f"/api/tasks/{task['id']}/execute-async"),
            ("DELETE", f"/api/tasks/{task['id']}"),
        ):
            answer = await foreign.ask(method, path)
            assert answer.status_code == 403 and "access-control-allow-origin" not in answer.headers
            assert "SEATRIAL_CORS_ORIGINS" in answer.json()["detail"]
        assert (await server.get(f"/api/tasks/{task['id']}"))["status"] == "pending"


async def test_what_is_refused_is_one_text_for_the_page_to_show(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", None, cors_origins=PAGE) as server:
        page = RunnerPage(server)
        no_zip = await page.upload(400, archive=b"no archive at all")
        no_task = await page.upload(400, archive=zipped({"readme.txt": "Nothing here."}))
        too_many = await page.upload(422, num_runs="101")
        no_model = await page.upload(400, agent="terminus-2", model="")
        made = await page.upload(agent="terminus-2", model="anthropic/claude-opus-4-5")
        no_key = await page.execute(made["id"], 400)
        odd_key = await page.execute(made["id"], 400, key="no key at all: é")
        for answer in (no_zip, no_task, too_many, no_model, no_key, odd_key):
            assert set(answer) == {"detail"} and isinstance(answer["detail"], str)
        assert no_task["detail"].startswith("There is no task in hello-task.zip. A task has a task.toml")
        assert "needs a model" in no_model["detail"]
        assert "ANTHROPIC_API_KEY" in no_key["detail"] and "OPENROUTER_API_KEY" in odd_key["detail"]


async def test_a_page_may_read_the_refusal_of_every_layer(tmp_path: Path) -> None:
    """Also of those that answer before anybody asked where the request came from. Other pages may read none."""
    async with serving(tmp_path / "home", None, cors_origins=PAGE) as server:
        page, foreign = RunnerPage(server), RunnerPage(server, "http://localhost:3001")
        odd_key = {"params": {"openrouter_api_key": "spaces in it"}}
        too_large = {"content": b"x" * (3 << 20), "params": {"name": "n"}}
        for status, path, given in ((400, "/api/stats", odd_key), (413, "/api/tasks/1/execute-async", too_large)):
            assert (await page.read("POST", path, status, **given))["detail"]
            answer = await foreign.ask("POST", path, **given)
            assert answer.status_code >= 400 and "access-control-allow-origin" not in answer.headers


async def test_an_agent_is_known_by_the_beginning_of_its_name(idle: Server) -> None:
    """Its menu has room for about twenty letters."""
    agents = await idle.get("/api/agents")
    assert all(agent["name"].startswith(f"{agent['id']} ") for agent in agents)
    assert len({agent["id"] for agent in agents}) == len(agents)


async def test_the_log_of_a_running_run_is_what_its_terminal_showed(tmp_path: Path) -> None:
    """Not the recording of it, which is lines of JSON."""
    header = '{"version": 2, "width": 160, "height": 40}\n'
    listed = '[0.1, "o", "\\u001b[?2004h/app# "]\n[0.2, "i", "ls\\n"]\n[0.3, "o", "ls\\r\\n"]\n'
    told = [
        (OutputStream.LOG, "Agent begins"),
        (OutputStream.TERMINAL, header + listed),
        (OutputStream.TERMINAL, '[0.4, "o", "hello\\r\\n/app# "]\n'),
        (OutputStream.VERIFIER, "\x1b[32m1 passed\x1b[0m\n"),
    ]
    async with serving(tmp_path / "home", FakeRunner(seconds=3600), cors_origins=PAGE) as server:
        page = RunnerPage(server)
        task = await page.upload(num_runs="1")
        await page.execute(task["id"])
        run = await until_running(page, task["id"])
        pieces = [NewOutput(trial_id=run["id"], attempt=1, stream=stream, text=text) for stream, text in told]
        await server.installation.store.output.append(pieces, datetime.now(UTC))
        logs = (await page.read("GET", f"/api/tasks/{task['id']}/runs/{run['id']}/logs"))["logs"]
        heard, _, note = logs.rstrip("\n").rpartition("\n")
        assert heard == "Agent begins\n/app# ls\nhello\n/app# \n1 passed"
        assert note == "[the trial is still running; this log is not complete]"
        await page.read("DELETE", f"/api/tasks/{task['id']}")


async def until_running(page: RunnerPage, task_id: int) -> dict[str, Any]:
    async with asyncio.timeout(LIMIT_SEC):
        while (run := (await page.read("GET", f"/api/tasks/{task_id}"))["runs"][0])["status"] == "pending":
            await asyncio.sleep(0.02)
    assert run["status"] == "running"
    return dict(run)


async def test_the_log_of_an_ended_run_has_no_escape_sequences(tmp_path: Path) -> None:
    files = {
        "agent/terminus_2.pane": b"\x1b[?2004hroot@st:/app# ls\r\n\x1b[?2004l\rhello\r\n",
        "verifier/test-stdout.txt": b"\x1b[31m1 failed\x1b[0m [100%]\n",
    }
    async with serving(tmp_path / "home", FakeRunner(files=files), cors_origins=PAGE) as server:
        page = RunnerPage(server)
        task = await page.upload(num_runs="1")
        await page.execute(task["id"])
        [run] = (await server.ended(task["id"]))["runs"]
        logs = (await page.read("GET", f"/api/tasks/{task['id']}/runs/{run['id']}/logs"))["logs"]
        assert "root@st:/app# ls\nhello\n" in logs and logs.endswith("1 failed [100%]\n")
        assert "\x1b" not in logs and "ask again" not in logs


async def test_the_log_of_a_run_that_waits_again_says_that_it_is_an_old_one(tmp_path: Path) -> None:
    """An error is retried in place; a graded run would keep its log, and the retry have one of its own."""
    files = {"verifier/test-stdout.txt": b"no verdict\n"}
    error = Result(outcome=Outcome.ERROR, cause=Cause.VERIFIER, message="no verdict")
    async with serving(tmp_path / "home", FakeRunner(lambda order: error, files=files), cors_origins=PAGE) as server:
        page = RunnerPage(server)
        task = await page.upload(num_runs="1")
        [run] = (await page.read("GET", f"/api/tasks/{task['id']}"))["runs"]
        log = f"/api/tasks/{task['id']}/runs/{run['id']}/logs"
        assert (await page.read("GET", log))["logs"] == ""
        await page.execute(task["id"])
        await server.ended(task["id"])
        first = (await page.read("GET", log))["logs"]
        await page.read("POST", f"/api/tasks/{task['id']}/retry")
        note, _, rest = (await page.read("GET", log))["logs"].partition("\n")
        assert (note, rest) == ("[logs of an earlier try; the next one has not started]", first)


async def test_a_cancelled_run_lasted_as_long_as_it_ran(tmp_path: Path) -> None:
    """Its page shows a duration of 0 as a bare zero, and none at all as nothing."""
    async with serving(tmp_path / "home", FakeRunner(seconds=3600), capacity=1, cors_origins=PAGE) as server:
        page = RunnerPage(server)
        task = await page.upload(num_runs="2")
        before = time.monotonic()
        await page.execute(task["id"])
        began = await until_running(page, task["id"])
        await server.post(f"/api/v1/jobs/{task['id']}/cancel")
        ended = await server.ended(task["id"])
        check_shown(ended)
        assert ended["status"] == "cancelled" and {run["status"] for run in ended["runs"]} == {"error"}
        lasted = {run["id"]: run["duration_seconds"] for run in ended["runs"]}
        assert 0 < lasted.pop(began["id"]) <= time.monotonic() - before
        assert list(lasted.values()) == [None], "that one never began"


@pytest.mark.parametrize("origins", [PAGE, f"https://other.example, {PAGE}/", f'["{PAGE}"]'])
async def test_its_own_setting_names_the_page(tmp_path: Path, origins: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``CORS_ORIGINS``, as its compose file sets it."""
    monkeypatch.setenv("CORS_ORIGINS", origins)
    async with serving(tmp_path / "home", None) as server:
        await RunnerPage(server).read("GET", "/api/stats")
