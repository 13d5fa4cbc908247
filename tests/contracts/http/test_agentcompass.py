"""AgentCompass: which task, what is answered, what is refused, who waits for whom, and what happens on leaving."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from seatrial.domain.result import Result, Usage
from seatrial.domain.trial import Cause, Outcome
from seatrial.ports.runner import Order, Progress
from seatrial.ports.store import Page
from seatrial.testing.fake_runner import FAIL, PASS, FakeRunner
from tests.contracts.http.server import Server, serving, write_task
from tests.waiting import LIMIT_SEC, eventually

KEY = "sk-compass-canary-123456"
LLM = {"model_name": "gpt-4", "api_key": KEY, "url": "http://127.0.0.1:9/v1"}
TRAJECTORY = {
    "steps": [
        {"step_id": 1, "source": "user", "message": "Do it."},
        {
            "step_id": 2,
            "source": "agent",
            "message": "I look.",
            "tool_calls": [{"function_name": "bash_command", "arguments": {"keystrokes": "ls\n"}}],
            "observation": {"results": [{"content": "hello.txt"}]},
        },
    ]
}
FILES = {
    "agent/trajectory.json": json.dumps(TRAJECTORY).encode(),
    "verifier/test-stdout.txt": b"1 passed in 0.01s\n",
}


def request(task: str = "hello", **changes: Any) -> dict[str, Any]:
    return {"params": {"task_id": task}, "llm_config": LLM, **changes}


def stating(problem: str) -> dict[str, Any]:
    return request(params={"task_id": "hello", "metadata": {"problem_statement": problem}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "tb2"
    write_task(root, "hello")
    write_task(root, "other")
    return root


async def test_a_solved_task_is_answered_true(tmp_path: Path, folder: Path) -> None:
    result = PASS.model_copy(update={"usage": Usage(model_calls=12, cost_usd=0.45)})
    async with serving(tmp_path / "home", FakeRunner(lambda order: result, files=FILES), tb2_dir=folder) as server:
        answer = await server.post("/api/tasks", json=request())
    assert answer["final_answer"] == "True"
    assert answer["call_stat"] == {"model": "gpt-4", "api_calls": 12, "total_cost": 0.45}
    *spoken, last = answer["trajectory"]
    assert all(set(turn) == {"step", "role", "content"} for turn in spoken)
    assert set(last) == {"step", "action", "output"}
    assert [(turn["step"], turn["role"]) for turn in spoken] == [(1, "user"), (2, "assistant"), (3, "user")]
    assert spoken[0]["content"] == "Do it." and spoken[2]["content"] == "hello.txt"
    assert "I look." in spoken[1]["content"] and "ls" in spoken[1]["content"]
    assert (last["step"], last["action"]) == (4, "evaluation")
    assert "'resolved': True" in last["output"] and "1 passed in 0.01s" in last["output"]
    assert (answer["reward"], answer["retryable"], answer["error"]) == (1.0, False, None)
    assert isinstance(answer["trial_id"], int)


async def test_an_unsolved_task_is_answered_false(tmp_path: Path, folder: Path) -> None:
    async with serving(tmp_path / "home", FakeRunner(lambda order: FAIL), tb2_dir=folder) as server:
        answer = await server.post("/api/tasks", json=request())
    assert answer["final_answer"] == "False" and "'resolved': False" in answer["trajectory"][-1]["output"]
    assert answer["trajectory"][0]["role"] == "user" and "hello" in answer["trajectory"][0]["content"]


FAULTS = [
    (Cause.LLM, "The model's service failed 3 times within 9 s.", 503, True),
    (Cause.LLM, "The model's service refused the request: AuthenticationError", 500, False),
    (Cause.SANDBOX, "The sandbox vanished.", 503, True),
    (Cause.IMAGE, "The image could not be had.", 503, True),
    (Cause.VERIFIER, "The verifier gave no valid reward.", 500, False),
    (Cause.AGENT, "The agent crashed.", 500, False),
]


async def test_what_could_not_be_graded_is_never_false(tmp_path: Path, folder: Path) -> None:
    """All at once: some of them are tried a second time, seconds later."""

    def script(order: Order) -> Result:
        cause, message, _, _ = FAULTS[int(order.job.instruction or 0)]
        return Result(outcome=Outcome.ERROR, cause=cause, message=message)

    async with serving(tmp_path / "home", FakeRunner(script), tb2_dir=folder) as server:
        answers = await asyncio.gather(
            *(server.http.post("/api/tasks", json=stating(str(number))) for number in range(len(FAULTS)))
        )
    for answer, (cause, message, status, retryable) in zip(answers, FAULTS, strict=True):
        told = answer.json()
        assert answer.status_code == status and "final_answer" not in told
        assert (told["cause"], told["retryable"], told["error"]) == (cause, retryable, message)
        assert message in told["detail"]


NAMED = [
    {"task_id": "hello"},
    {"metadata": {"task_name": "hello"}},
    {"metadata": {"instance_id": "hello"}},
    {"metadata": {"terminal_bench_task_id": "hello"}},
    {"metadata": {"task_id": "hello"}},
    {"task_name": "hello"},
    {"instance_id": "hello", "metadata": None},
    {"terminal_bench_task_id": "hello", "metadata": {"unknown": 1}},
    {"task_id": "hello", "metadata": {"task_name": "other"}},
    {"task_id": "", "metadata": {"task_name": "hello"}, "task_name": "other"},
]


async def test_where_the_name_of_the_task_is_found(tmp_path: Path, folder: Path) -> None:
    runner = FakeRunner()
    async with serving(tmp_path / "home", runner, tb2_dir=folder) as server:
        for params in NAMED:
            await server.post("/api/tasks", json={"params": params, "llm_config": {**LLM, "more": 1}, "unknown": {}})
            assert runner.orders.pop().task.name == "hello", params


async def test_what_was_asked_for_reaches_the_trial(tmp_path: Path, folder: Path) -> None:
    runner = FakeRunner()
    infer = {"temperature": 0.25, "top_p": 0.5, "max_tokens": 99, "top_k": 5, "enable_thinking": False, "seed": None}
    wish = request(
        params={"task_id": "hello", "metadata": {"problem_statement": "Do something else."}},
        llm_config={**LLM, "model_infer_params": infer, "request_timeout": 33},
        max_steps=7,
    )
    async with serving(tmp_path / "home", runner, tb2_dir=folder) as server:
        await server.post("/api/tasks", json=wish)
        await server.post("/api/tasks", json=request(max_steps=None))
        [_, job] = await server.installation.store.jobs.page(Page())
    order, plain = runner.orders
    assert order.job.instruction == "Do something else." and plain.job.instruction is None
    options = order.agent.options
    assert (order.agent.name, order.agent.model) == ("terminus-2", "openai/gpt-4")
    assert (options["temperature"], options["top_p"], options["max_tokens"]) == (0.25, 0.5, 99)
    assert options["extra_body"] == {"top_k": 5, "enable_thinking": False}
    assert (options["max_turns"], options["timeout"], options["api_base"]) == (7, 33, LLM["url"])
    assert "max_turns" not in plain.agent.options
    assert dict(order.secrets) == {"OPENAI_API_KEY": KEY} and not order.job.own_keys
    assert KEY not in job.spec.model_dump_json() and job.spec.origin == "agentcompass"


async def test_the_folder_is_read_as_it_is_now_and_registered_tasks_come_after_it(tmp_path: Path, folder: Path) -> None:
    runner = FakeRunner()
    async with serving(tmp_path / "home", runner, tb2_dir=folder) as server:
        await server.installation.library.add(write_task(tmp_path / "elsewhere", "registered"))
        await server.post("/api/tasks", json=request("registered"))
        await server.post("/api/tasks", json=request("hello"))
        await server.post("/api/tasks", json=request("hello"))
        (folder / "hello" / "instruction.md").write_text("Something new.\n")
        await server.post("/api/tasks", json=request("hello"))
        write_task(folder, "late")
        await server.post("/api/tasks", json=request("late"))
    registered, first, same, changed, late = (order.task for order in runner.orders)
    assert (registered.name, late.name) == ("registered", "late")
    assert first.digest == same.digest != changed.digest and changed.instruction.strip() == "Something new."


async def test_an_unknown_task_is_404(tmp_path: Path, folder: Path) -> None:
    async with serving(tmp_path / "home", None, tb2_dir=folder) as server:
        for name in ("missing", "..", ".", "../tb2/hello", "hello/../hello", "/etc", "hello\x00", "a" * 300):
            answer = await server.post("/api/tasks", status=404, json=request(name))
            assert set(answer) == {"detail"}


async def test_malformed_requests_are_400(idle: Server) -> None:
    headers = {"Content-Type": "application/json"}
    for body in (b"", b"{", b"[]", b'"text"', b"null", b'{"params": "\\ud800"}', b"[" * 5000):
        answer = await idle.post("/api/tasks", status=400, content=body, headers=headers)
        assert set(answer) == {"detail"}
    for params in ({}, {"params": None}, {"params": {"task_id": 7}}):
        answer = await idle.post("/api/tasks", status=400, json={"llm_config": LLM, **params})
        assert "task_id" in answer["detail"]


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"llm_config": None}, "llm_config"),
    ({"llm_config": {"api_key": KEY}}, "model_name"),
    ({"llm_config": {**LLM, "model_name": ""}}, "model_name"),
    ({"llm_config": {**LLM, "model_name": 5}}, "model_name"),
    ({"llm_config": {**LLM, "url": "ftp://example.org"}}, "address"),
    ({"llm_config": {**LLM, "url": 5}}, "url"),
    ({"llm_config": {**LLM, "model_infer_params": [1]}}, "model_infer_params"),
    ({"llm_config": {**LLM, "model_infer_params": {"api_base": "http://example.org"}}}, "api_base"),
    ({"llm_config": {**LLM, "model_infer_params": {"stream": True}}}, "stream"),
    ({"llm_config": {**LLM, "request_timeout": 0}}, "request_timeout"),
    ({"llm_config": {**LLM, "api_key": "two words"}}, "key"),
    ({"max_steps": 0}, "max_steps"),
    ({"max_steps": "many"}, "max_steps"),
    ({"params": "hello"}, "params"),
]


async def test_invalid_fields_are_422(tmp_path: Path, folder: Path) -> None:
    async with serving(tmp_path / "home", None, tb2_dir=folder) as server:
        for changes, field in INVALID:
            detail = (await server.post("/api/tasks", status=422, json=request(**changes)))["detail"]
            assert field in detail and KEY not in detail
        assert await server.installation.store.jobs.page(Page()) == []


async def test_a_model_that_needs_a_key_and_has_none_is_400(tmp_path: Path, folder: Path) -> None:
    async with serving(tmp_path / "home", None, tb2_dir=folder) as server:
        wish = request(llm_config={"model_name": "gpt-4"})
        assert "OPENAI_API_KEY" in (await server.post("/api/tasks", status=400, json=wish))["detail"]


async def test_our_own_keys_never_go_to_a_callers_address(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-operator")
    runner = FakeRunner()
    async with serving(tmp_path / "home", runner, tb2_dir=folder) as server:
        await server.post("/api/tasks", json=request(llm_config={"model_name": "gpt-4", "url": LLM["url"]}))
        await server.post("/api/tasks", json=request(llm_config={"model_name": "gpt-4"}))
    theirs, ours = runner.orders
    assert dict(theirs.secrets) == {} and dict(ours.secrets) == {"OPENAI_API_KEY": "sk-of-the-operator"}


async def test_at_most_so_many_run_at_once_and_the_others_wait_their_turn(tmp_path: Path, folder: Path) -> None:
    lets_go = asyncio.Semaphore(1)
    runner = FakeRunner(lets_go=lets_go)
    async with serving(tmp_path / "home", runner, tb2_dir=folder, waiting_limit=2) as server:
        await server.post("/api/tasks", json=request())
        calls = []

        def begun() -> int:
            return len(runner.orders) - 1

        def arrived() -> int:
            """Those that run, and those that wait for a place."""
            return begun() + len(server.places._waiters or ())

        for number in range(5):
            calls.append(asyncio.create_task(server.post("/api/tasks", json=stating(str(number)))))
            await eventually(lambda: arrived() > number, f"call {number} is there")  # noqa: B023 - ends before the next
        for running in (3, 4, 5, 5, 5):  # one place becomes free, and the next call gets it
            lets_go.release()
            await eventually(lambda: begun() == running, f"{running} have begun")  # noqa: B023 - as above
        answers = await asyncio.gather(*calls)
    assert [answer["final_answer"] for answer in answers] == ["True"] * 5
    assert runner.most_at_once == 2
    assert [order.job.instruction for order in runner.orders[1:]] == list("01234"), "first come, first served"


class Waiting(FakeRunner):
    """Waits for ever where the instruction says so."""

    async def run(self, order: Order, progress: Progress) -> Result:
        if order.job.instruction == "Wait.":
            self.orders.append(order)
            await asyncio.sleep(3600)
        return await super().run(order, progress)


async def test_a_client_that_goes_away_stops_its_trial_and_frees_its_place(tmp_path: Path, folder: Path) -> None:
    runner = Waiting()
    async with serving(tmp_path / "home", runner, tb2_dir=folder, waiting_limit=1) as server:
        first = asyncio.create_task(_impatient(server, None))
        await eventually(lambda: runner.orders, "the first trial runs")
        assert await _impatient(server, 0.5) == "left"  # before it ever had a place
        first.cancel()
        store = server.installation.store

        async def have_ended() -> bool:
            return None not in [job.ended_at for job in await store.jobs.page(Page())]

        await eventually(have_ended, "the trial of the client that left is stopped")
        [job] = await store.jobs.page(Page())
        assert (await store.jobs.counts([job.id]))[job.id].cancelled == 1 and len(runner.orders) == 1
        assert (await server.post("/api/tasks", json=request()))["final_answer"] == "True"


async def _impatient(server: Server, seconds: float | None) -> str:
    async with httpx.AsyncClient(base_url=server.http.base_url, trust_env=False) as http:
        try:
            answer = await http.post("/api/tasks", json=stating("Wait."), timeout=seconds)
        except httpx.TimeoutException:
            return "left"
    return answer.text


async def test_a_trial_that_somebody_else_cancels_is_5xx(tmp_path: Path, folder: Path) -> None:
    async with serving(tmp_path / "home", FakeRunner(seconds=3600), tb2_dir=folder) as server:
        call = asyncio.create_task(server.http.post("/api/tasks", json=request()))
        store, clock = server.installation.store, server.installation.clock
        async with asyncio.timeout(LIMIT_SEC):
            while not (jobs := await store.jobs.page(Page())):
                await asyncio.sleep(0.05)
            await store.jobs.cancel(jobs[0].id, clock())
            answer = await call
    assert answer.status_code == 503 and answer.json()["retryable"] is True
