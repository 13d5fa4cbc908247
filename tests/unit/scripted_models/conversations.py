"""A conversation in each wire format, as agents write it: the instruction, the calls that the model made, and what came
of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Turns = list[tuple[dict[str, Any], str]]
"""The arguments of each call that the model made, and its output."""
SCHEMA = {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}
TOOL = "exec_command"


@dataclass(frozen=True)
class Wire:
    """How one format is spoken. ``call_in`` finds the call in a plain answer."""

    name: str
    path: Callable[[bool], str]
    body: Callable[[str, Turns], dict[str, Any]]
    call_in: Callable[[dict[str, Any]], tuple[str, dict[str, Any]] | None]

    def request(self, model: str, instruction: str, turns: Turns, *, stream: bool) -> tuple[str, dict[str, Any]]:
        body = self.body(instruction, turns)
        if self.name == "gemini":
            return self.path(stream).replace("MODEL", model), body
        options = {"stream_options": {"include_usage": True}} if self.name == "chat" and stream else {}
        return self.path(stream), {**body, "model": model, "stream": stream, **options}


def _chat(instruction: str, turns: Turns) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": instruction}]
    for number, (arguments, output) in enumerate(turns):
        function = {"name": TOOL, "arguments": json.dumps(arguments)}
        call = {"id": str(number), "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": str(number), "content": output},
        ]
    tool = {"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}
    return {"messages": messages, "tools": [tool]}


def _responses(instruction: str, turns: Turns) -> dict[str, Any]:
    text = [{"type": "input_text", "text": instruction}]
    items: list[dict[str, Any]] = [{"type": "message", "role": "user", "content": text}]
    for number, (arguments, output) in enumerate(turns):
        items += [
            {"type": "reasoning", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "call_id": str(number), "name": TOOL, "arguments": json.dumps(arguments)},
            {"type": "function_call_output", "call_id": str(number), "output": output},
        ]
    return {"input": items, "tools": [{"type": "function", "name": TOOL, "parameters": SCHEMA}, {"type": "web_search"}]}


def _messages(instruction: str, turns: Turns) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": instruction}]}]
    for number, (arguments, output) in enumerate(turns):
        use = {"type": "tool_use", "id": str(number), "name": TOOL, "input": arguments}
        result = {"type": "tool_result", "tool_use_id": str(number), "content": [{"type": "text", "text": output}]}
        reminder = {"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result, reminder]}]
    return {"messages": messages, "max_tokens": 1000, "tools": [{"name": TOOL, "input_schema": SCHEMA}]}


def _gemini(instruction: str, turns: Turns) -> dict[str, Any]:
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": instruction}]}]
    for arguments, output in turns:
        response = {"name": TOOL, "response": {"output": output}}
        contents += [
            {"role": "model", "parts": [{"functionCall": {"name": TOOL, "args": arguments}}]},
            {"role": "user", "parts": [{"functionResponse": response}]},
        ]
    declared = [{"name": TOOL, "parametersJsonSchema": SCHEMA}]
    return {"contents": contents, "tools": [{"functionDeclarations": declared}]}


def _chat_call(answer: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    for call in answer["choices"][0]["message"].get("tool_calls") or ():
        return call["function"]["name"], json.loads(call["function"]["arguments"])
    return None


def _responses_call(answer: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    found = [item for item in answer["output"] if item["type"] == "function_call"]
    return (found[0]["name"], json.loads(found[0]["arguments"])) if found else None


def _messages_call(answer: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    found = [block for block in answer["content"] if block["type"] == "tool_use"]
    return (found[0]["name"], found[0]["input"]) if found else None


def _gemini_call(answer: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    found = [part for part in answer["candidates"][0]["content"]["parts"] if "functionCall" in part]
    return (found[0]["functionCall"]["name"], found[0]["functionCall"]["args"]) if found else None


def _generate(stream: bool) -> str:
    return f"/v1beta/models/MODEL:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"


WIRES = (
    Wire("chat", lambda stream: "/v1/chat/completions", _chat, _chat_call),
    Wire("responses", lambda stream: "/v1/responses", _responses, _responses_call),
    Wire("messages", lambda stream: "/v1/messages", _messages, _messages_call),
    Wire("gemini", _generate, _gemini, _gemini_call),
)
