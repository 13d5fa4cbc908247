"""Scripted models in each wire format: they call the tool that was offered, go by its result, and tell their tokens so
that the gate's own reader of that format counts the same."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from seatrial.domain.model_calls.model_call import CallUsage
from seatrial.gateway.wire import WireFormat, format_of
from seatrial.scripted_models import faults
from seatrial.scripted_models.faults import Fault
from seatrial.scripted_models.server import ScriptedModels
from seatrial.scripted_models.tools import Offered, ShellTool, shell_tool
from tests.unit.scripted_models.conversations import SCHEMA, TOOL, WIRES, Turns, Wire
from tests.waiting import LIMIT_SEC

SOLVER = "solve-read-the-screen"
START = "Run `/app/challenge.sh`. The last reply prints `ALL CODES ACCEPTED`."
FIRST = ({"cmd": "/app/challenge.sh"}, "Code 1 of 3: 123456")
LAST = ({"cmd": "/app/reply.sh 123456"}, "ALL CODES ACCEPTED")

formats = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


async def ask(
    models: ScriptedModels, wire: Wire, turns: Turns, *, stream: bool = False, model: str = SOLVER, **headers: str
) -> httpx.Response:
    path, body = wire.request(model, START, turns, stream=stream)
    async with httpx.AsyncClient(trust_env=False, timeout=LIMIT_SEC) as client:
        return await client.post(f"{models.base_url.removesuffix('/v1')}{path}", json=body, headers=headers)


def gates(wire: Wire) -> tuple[WireFormat, str]:
    path = wire.path(False).replace("MODEL", SOLVER)
    found = format_of("POST", path)
    assert found is not None and found.name == wire.name
    return found, path


@formats
async def test_the_offered_tool_is_called_and_its_result_decides_the_next_turn(wire: Wire) -> None:
    async with ScriptedModels() as models:
        answers = [(await ask(models, wire, turns)).json() for turns in ([], [FIRST], [FIRST, LAST])]
    assert [wire.call_in(answer) for answer in answers] == [
        (TOOL, {"cmd": "/app/challenge.sh"}),
        (TOOL, {"cmd": "/app/reply.sh 123456"}),
        None,
    ]
    assert [call.format for call in models.requests] == [wire.name] * 3


@formats
async def test_the_gate_counts_what_the_server_counted_streamed_or_not(wire: Wire) -> None:
    gate, _ = gates(wire)
    counted: list[CallUsage] = []
    async with ScriptedModels() as models:
        for stream in (False, True):
            answer = await ask(models, wire, [FIRST], stream=stream)
            if stream:
                assert answer.headers["content-type"] == "text/event-stream"
                meter = gate.meter(tell_usage=False)
                assert meter.feed(answer.content) == answer.content and meter.ended
                counted.append(meter.answer.usage)
                assert meter.answer.finish_reason
            else:
                counted.append(gate.read_answer(answer.content).usage)
    first, second = (call.counted for call in models.requests)
    assert first == second and first is not None and first.input_tokens > first.cached_tokens
    assert (first.cached_tokens > 0) is (wire.name != "chat")
    for usage in counted:
        assert (usage.input_tokens, usage.output_tokens) == (first.input_tokens, first.output_tokens)
        assert (usage.cached_tokens or 0) == first.cached_tokens
    assert models.counted == first + second


@formats
async def test_a_stream_says_the_same_as_a_plain_answer(wire: Wire) -> None:
    async with ScriptedModels() as models:
        plain = (await ask(models, wire, [FIRST])).text
        streamed = (await ask(models, wire, [FIRST], stream=True)).text
    for text in (plain, streamed):
        assert "/app/reply.sh" in text and TOOL in text
    assert streamed.count("data: ") > 1


@formats
async def test_each_format_has_its_own_key_header_and_its_own_errors(wire: Wire) -> None:
    header = {"messages": "x-api-key", "gemini": "x-goog-api-key"}.get(wire.name, "authorization")
    key = {"authorization": "Bearer sk-canary"}.get(header, "sk-canary")
    async with ScriptedModels(key="sk-canary", faults=faults.first([Fault(kind="rate_limit")])) as models:
        limited = await ask(models, wire, [], **{header: key})
        refused = await ask(models, wire, [])
        served = await ask(models, wire, [], **{header: key})
        unknown = await ask(models, wire, [], model="nobody", **{header: key})
    assert [answer.status_code for answer in (limited, refused, served, unknown)] == [429, 401, 200, 404]
    named = {"messages": ("type", "rate_limit_error"), "gemini": ("status", "RESOURCE_EXHAUSTED")}
    field, value = named.get(wire.name, ("code", "rate_limit_exceeded"))
    assert limited.json()["error"][field] == value
    assert "sk-canary" not in repr(list(models.requests))


@formats
@pytest.mark.parametrize("body", [[], {"model": "x"}, {"messages": 5, "input": 5, "contents": 5, "model": "x"}])
async def test_a_body_of_another_shape_is_refused(wire: Wire, body: Any) -> None:
    _, path = gates(wire)
    async with ScriptedModels() as models, httpx.AsyncClient(trust_env=False, timeout=LIMIT_SEC) as client:
        answer = await client.post(f"{models.base_url.removesuffix('/v1')}{path}", json=body)
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("path", "name"), [("/v1/messages/count_tokens", "input_tokens"), ("/v1beta/models/m:countTokens", "totalTokens")]
)
async def test_the_length_of_a_prompt_is_told_and_is_no_call(path: str, name: str) -> None:
    wire = next(wire for wire in WIRES if wire.name == ("messages" if "messages" in path else "gemini"))
    _, body = wire.request("m", START, [], stream=False)
    async with ScriptedModels() as models, httpx.AsyncClient(trust_env=False, timeout=LIMIT_SEC) as client:
        answer = await client.post(f"{models.base_url.removesuffix('/v1')}{path}", json=body)
    assert answer.json() == {name: len(START) // 4}
    assert models.calls == 0


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        ([], {"command": "ls"}),
        ([Offered("Read", {}), Offered("Bash", {"properties": {"command": {"type": "string"}}})], {"command": "ls"}),
        ([Offered("exec_command", SCHEMA)], {"cmd": "ls"}),
        ([Offered("x_execute_commands", {})], {"commands": ["ls"]}),
        ([Offered("shell", {"properties": {"command": {"type": "array"}}})], {"command": ["bash", "-c", "ls"]}),
        (
            [
                Offered(
                    "run_shell_command",
                    {
                        "properties": {"command": {"type": "STRING"}, "is_background": {"type": "BOOLEAN"}},
                        "required": ["command", "is_background"],
                    },
                )
            ],
            {"command": "ls", "is_background": False},
        ),
    ],
)
def test_the_tool_that_runs_commands_is_found_by_name_and_used_by_its_schema(
    offered: list[Offered], expected: dict[str, Any]
) -> None:
    tool = shell_tool(offered)
    assert tool.arguments("ls") == expected
    assert tool == ShellTool() or tool.name in {entry.name for entry in offered}


async def test_an_answer_of_a_schema_is_json_of_it() -> None:
    schema = {
        "type": "object",
        "properties": {"who": {"type": "string", "enum": ["user", "model"]}, "sure": {"type": "boolean"}},
        "required": ["who", "sure"],
    }
    config = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    body = {"contents": [{"role": "user", "parts": [{"text": "Who speaks?"}]}], "generationConfig": config}
    async with ScriptedModels() as models, httpx.AsyncClient(trust_env=False, timeout=LIMIT_SEC) as client:
        url = f"{models.base_url.removesuffix('/v1')}/v1beta/models/give-up:generateContent"
        answer = (await client.post(url, json=body)).json()
    assert answer["candidates"][0]["content"]["parts"] == [{"text": '{"who": "user", "sure": false}'}]
