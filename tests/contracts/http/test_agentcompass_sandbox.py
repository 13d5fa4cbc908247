"""AgentCompass and TBench Runner with real sandboxes: a scripted model behind real HTTP, or the task's own solution."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from seatrial.engine.tasks.library import TaskLibrary
from seatrial.sandboxes.record import SandboxRecord
from seatrial.scripted_models.server import ScriptedModels
from tests.command_line import SAMPLES, traces
from tests.contracts.http.server import Server, real_runner, serving
from tests.waiting import eventually

KEY = "sk-compass-canary-123456"

pytestmark = [
    pytest.mark.sandbox,
    # LiteLLM's types make pydantic warn on first use.
    pytest.mark.filterwarnings("ignore:Item .* on TypedDict class:UserWarning"),
]


@asynccontextmanager
async def in_sandboxes(home: Path, cache: Path, **settings: Any) -> AsyncIterator[Server]:
    async with (
        real_runner(cache, home.parent.name, patience_sec=2) as runner,
        serving(home, runner, tb2_dir=SAMPLES, sandbox="oci", cache=cache, **settings) as server,
    ):
        yield server


def request(models: ScriptedModels, script: str, task: str = "read-the-screen", **llm: Any) -> dict[str, Any]:
    config = {"model_name": script, "api_key": KEY, "url": models.base_url, **llm}
    return {"params": {"task_id": task}, "llm_config": config, "max_steps": 40}


async def test_every_parameter_reaches_the_model_and_a_solved_task_is_true(tmp_path: Path, image_cache: Path) -> None:
    infer = {
        "temperature": 0.25,
        "top_p": 0.5,
        "max_tokens": 777,
        "seed": 7,
        "frequency_penalty": 0.1,
        "top_k": 3,
        "min_p": 0.05,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    async with ScriptedModels(key=KEY) as models, in_sandboxes(tmp_path / "home", image_cache) as server:
        answer = await server.post(
            "/api/tasks", json=request(models, "solve-read-the-screen", model_infer_params=infer, request_timeout=60)
        )
        assert answer["final_answer"] == "True", answer
        assert answer["call_stat"]["model"] == "solve-read-the-screen"
        assert answer["call_stat"]["api_calls"] == models.calls >= 4
        *spoken, last = answer["trajectory"]
        assert [turn["step"] for turn in answer["trajectory"]] == list(range(1, len(answer["trajectory"]) + 1))
        assert {turn["role"] for turn in spoken} == {"user", "assistant"}
        assert "ALL CODES ACCEPTED" in "".join(turn["content"] for turn in spoken)
        assert last["action"] == "evaluation" and "'resolved': True" in last["output"]
        for call in models.requests:
            assert {name: call.body.get(name) for name in infer} == infer
            assert call.model == "solve-read-the-screen"
            assert call.headers["authorization"] == f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"
        # A name that a model client believes to know: it would drop what such a model is said not to take.
        models.scripts = {**models.scripts, "gpt-5.1": models.scripts["give-up"]}
        known = await server.post(
            "/api/tasks", json=request(models, "gpt-5.1", model_infer_params={"temperature": 0.3})
        )
        assert known["final_answer"] == "False"
        assert models.requests[-1].body["temperature"] == 0.3


async def test_unsolved_is_false_and_an_outage_is_5xx(tmp_path: Path, image_cache: Path) -> None:
    async with ScriptedModels() as models, in_sandboxes(tmp_path / "home", image_cache) as server:
        unsolved, outage = await asyncio.gather(
            server.http.post("/api/tasks", json=request(models, "give-up")),
            server.http.post("/api/tasks", json=request(models, "outage")),
        )
    assert (unsolved.status_code, unsolved.json()["final_answer"]) == (200, "False"), unsolved.text
    assert "'resolved': False" in unsolved.json()["trajectory"][-1]["output"]
    assert outage.status_code == 503, outage.text
    assert outage.json()["retryable"] is True and "final_answer" not in outage.json()


async def test_a_client_that_goes_away_has_its_sandbox_removed(tmp_path: Path, image_cache: Path) -> None:
    async with ScriptedModels() as models, in_sandboxes(tmp_path / "home", image_cache) as server:
        wish = request(models, "shell", task="answer-file")
        wish["params"]["metadata"] = {"problem_statement": "Wait.\n\n```sh\nsleep 600\n```\n"}
        async with httpx.AsyncClient(base_url=server.http.base_url, trust_env=False, timeout=None) as http:
            call = asyncio.create_task(http.post("/api/tasks", json=wish))
            await eventually(lambda: models.calls >= 2, "the agent is at work inside")
            sandboxes = _sandboxes(image_cache, tmp_path.name)
            assert sandboxes and traces(image_cache, sandboxes)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await eventually(lambda: not traces(image_cache, sandboxes), "the sandbox is gone")


async def test_the_whole_way_of_tbench_runner(tmp_path: Path, image_cache: Path) -> None:
    """Pack, upload, execute, poll, logs, statistics."""
    async with in_sandboxes(tmp_path / "home", image_cache) as server:
        library: TaskLibrary = server.installation.library
        [archive] = library.pack(SAMPLES / "tidy-the-list", tmp_path)
        task = await server.upload(archive.read_bytes(), name="tidy", num_runs=2)
        await server.post(f"/api/tasks/{task['id']}/execute-async")
        done = await server.ended(task["id"])
        assert (done["status"], done["passed_runs"]) == ("completed", 2), done
        for run in done["runs"]:
            assert (run["status"], run["tests_total"], run["tests_passed"], run["tests_failed"]) == ("passed", 3, 3, 0)
            logs = (await server.get(f"/api/tasks/{task['id']}/runs/{run['id']}/logs"))["logs"]
            assert '"trimmed": 1' in logs.rpartition("==> verifier/")[2]
        assert (await server.get("/api/stats"))["runs"] == {"total": 2, "passed": 2, "failed": 0}


def _sandboxes(cache: Path, install: str) -> set[str]:
    records = [SandboxRecord.read(place) for place in (cache / "run").iterdir()]
    return {record.sandbox for record in records if record is not None and record.owner.install == install}
