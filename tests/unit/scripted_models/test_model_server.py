"""The scripted model server over real HTTP: answers, streams, faults, and what it remembers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import time
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest

from seatrial.scripted_models import faults
from seatrial.scripted_models.faults import Fault
from seatrial.scripted_models.scripts import SCRIPTS, Act, View, shell, solve_read_the_screen
from seatrial.scripted_models.server import ScriptedModels
from tests.waiting import LIMIT_SEC, eventually

TERMINUS = 'Answer as {"analysis": "", "plan": "", "commands": [{"keystrokes": ""}]}\n'


def chat(*contents: str, model: str = "give-up", **more: Any) -> dict[str, Any]:
    """User and assistant in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[index % 2], "content": text} for index, text in enumerate(contents)]
    return {"model": model, "messages": messages, **more}


async def post(models: ScriptedModels, body: dict[str, Any], **more: Any) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=LIMIT_SEC) as client:
        return await client.post(f"{models.base_url}/chat/completions", json=body, **more)


def said(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    content: dict[str, Any] = json.loads(response.json()["choices"][0]["message"]["content"])
    return content


async def test_an_answer_has_the_shape_of_openais() -> None:
    async with ScriptedModels() as models:
        response = await post(models, chat(TERMINUS + "Do something."))
    body = response.json()
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"]
    assert said(response)["task_complete"] is True


async def test_a_stream_says_the_same_in_pieces() -> None:
    async with ScriptedModels() as models:
        whole = await post(models, chat(TERMINUS))
        streamed = await post(models, chat(TERMINUS, stream=True, stream_options={"include_usage": True}))
    assert streamed.headers["content-type"] == "text/event-stream"
    lines = [line.removeprefix("data: ") for line in streamed.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    pieces = [json.loads(line) for line in lines[:-1]]
    text = "".join(choice["delta"].get("content", "") for piece in pieces for choice in piece["choices"])
    assert json.loads(text) == said(whole)
    assert pieces[-1]["usage"] == whole.json()["usage"]


async def test_models_are_listed_and_unknown_ones_are_not_there() -> None:
    async with ScriptedModels() as models, httpx.AsyncClient(trust_env=False, timeout=LIMIT_SEC) as client:
        listed = (await client.get(f"{models.base_url}/models")).json()["data"]
        unknown = await post(models, chat("x", model="no-such-script"))
        lost = await client.get(f"{models.base_url}/nowhere")
    assert {model["id"] for model in listed} == set(SCRIPTS)
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    assert lost.status_code == 404


async def test_requests_are_remembered_without_the_key() -> None:
    async with ScriptedModels(key="sk-canary") as models:
        refused = await post(models, chat("x"), headers={"Authorization": "Bearer wrong"})
        accepted = await post(models, chat("x", temperature=0.25), headers={"Authorization": "Bearer sk-canary"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
    assert accepted.status_code == 200
    assert models.calls == 2
    first, second = models.requests
    assert first.fault == Fault(kind="auth")
    assert second.body["temperature"] == 0.25
    assert second.headers["authorization"] == "sha256:" + hashlib.sha256(b"sk-canary").hexdigest()
    assert "sk-canary" not in repr(models) + repr(list(models.requests))


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_a_rate_limit_says_when_to_come_back(form: Any) -> None:
    fault = Fault(kind="rate_limit", retry_after_sec=7, retry_after_form=form)
    async with ScriptedModels(faults=faults.first([fault])) as models:
        before = time.time()
        limited = await post(models, chat("x"))
        after = time.time()
        served = await post(models, chat("x"))
    assert (limited.status_code, limited.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    value = limited.headers["retry-after"]
    if form == "seconds":
        assert float(value) == 7
    else:  # a date has no fractions
        assert before + 6 <= parsedate_to_datetime(value).timestamp() <= after + 7
    assert served.status_code == 200


async def test_a_context_too_long_is_told_as_openai_tells_it() -> None:
    async with ScriptedModels(faults=faults.always(Fault(kind="context_length"))) as models:
        response = await post(models, chat("x"))
    assert (response.status_code, response.json()["error"]["code"]) == (400, "context_length_exceeded")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_cut_ends_in_the_middle(stream: bool) -> None:
    async with ScriptedModels(faults=faults.first([Fault(kind="cut")])) as models:
        with pytest.raises(httpx.RemoteProtocolError):
            await post(models, chat("x", stream=stream))
        assert (await post(models, chat("x", stream=stream))).status_code == 200


async def test_a_hang_stays_silent_and_does_not_hold_up_the_others() -> None:
    async with ScriptedModels(faults=faults.first([Fault(kind="hang")])) as models:
        hanging = asyncio.create_task(post(models, chat("x")))
        await eventually(lambda: models.requests, "the first request is there")
        assert (await post(models, chat("x"))).status_code == 200
        assert not hanging.done()
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)


async def test_hundreds_at_once_are_all_answered_and_counted() -> None:
    async with ScriptedModels() as models:
        limits = httpx.Limits(max_connections=400)
        async with httpx.AsyncClient(trust_env=False, limits=limits, timeout=LIMIT_SEC) as client:
            url = f"{models.base_url}/chat/completions"
            answers = await asyncio.gather(*(client.post(url, json=chat(TERMINUS)) for _ in range(400)))
    assert {answer.status_code for answer in answers} == {200}
    assert models.calls == 400


def test_a_plan_of_faults_is_the_same_for_the_same_seed() -> None:
    limit = Fault(kind="rate_limit")
    one, two, other = (faults.share(0.8, [limit], seconds=90, seed=seed) for seed in (1, 1, 2))
    drawn = [[plan(call, call / 10) for call in range(1000)] for plan in (one, two, other)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert 0.7 < drawn[0][:900].count(limit) / 900 < 0.9
    assert drawn[0][900:] == [None] * 100


@pytest.mark.parametrize("body", [b"", b"[]", b'{"model": "give-up"}', b"\xff"])
async def test_a_body_that_is_no_chat_is_refused(body: bytes) -> None:
    async with ScriptedModels() as models, httpx.AsyncClient(trust_env=False, timeout=LIMIT_SEC) as client:
        response = await client.post(f"{models.base_url}/chat/completions", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


def test_as_a_process_it_prints_its_address() -> None:
    command = [sys.executable, "-m", "seatrial.testing.model_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        answer = httpx.get(f"{told['base_url']}/models", trust_env=False, timeout=LIMIT_SEC)
        process.terminate()
    assert [model["id"] for model in answer.json()["data"]] == told["models"]


def view(*contents: str) -> View:
    return View(messages=tuple(chat(*contents)["messages"]))


TYPED = json.dumps({"commands": [{"keystrokes": "/app/challenge.sh\n"}]})


def test_the_solver_types_only_what_the_screen_showed() -> None:
    assert solve_read_the_screen(view("start")).commands == ("/app/challenge.sh",)
    assert solve_read_the_screen(view("start", TYPED, "Code 1 of 3: 123456")).commands == ("/app/reply.sh 123456",)
    assert solve_read_the_screen(view("start", TYPED, "Code 2 of 3: 777777")).commands == ("/app/reply.sh 777777",)
    assert solve_read_the_screen(view("start", TYPED, "ALL CODES ACCEPTED")).done


def test_the_solver_does_not_take_the_instruction_for_the_screen() -> None:
    instruction = "The last reply prints `ALL CODES ACCEPTED`.\nCurrent terminal state:\n"
    assert solve_read_the_screen(view(instruction)).commands == ("/app/challenge.sh",)
    assert solve_read_the_screen(view(instruction + "Code 1 of 3: 111111")).commands == ("/app/reply.sh 111111",)


def test_the_solver_gets_nowhere_without_a_screen() -> None:
    blank = solve_read_the_screen(view("start", TYPED, ""))
    assert (blank.commands, blank.done) == ((), False)


def test_the_solver_never_gives_the_same_code_twice() -> None:
    replied = json.dumps({"commands": [{"keystrokes": "/app/reply.sh 123456\n"}]})
    again = view("start", TYPED, "Code 1 of 3: 123456", replied, "Code 1 of 3: 123456")
    assert solve_read_the_screen(again).commands == ()


def test_the_shell_script_types_the_block_and_waits_for_its_end() -> None:
    instruction = "Please run:\n```sh\necho one\necho two\n```\n"
    typed = shell(view(instruction))
    assert typed.commands == ("echo one", "echo two", "printf 'finished-%d\\n' 42")
    reply = json.dumps({"commands": [{"keystrokes": f"{line}\n"} for line in typed.commands]})
    assert shell(view(instruction, reply, "$ printf 'finished-%d\\n' 42")) == Act(
        "The commands are still running.", wait=1.0
    )
    assert shell(view(instruction, reply, "finished-42")).done
    assert shell(view("nothing to run")).done


async def test_an_agent_with_tools_gets_tool_calls() -> None:
    async with ScriptedModels() as models:
        response = await post(models, chat("start", model="solve-read-the-screen", tools=[{"type": "function"}]))
    choice = response.json()["choices"][0]
    call = choice["message"]["tool_calls"][0]["function"]
    assert choice["finish_reason"] == "tool_calls"
    assert (call["name"], json.loads(call["arguments"])) == ("bash", {"command": "/app/challenge.sh"})
