"""Formats a script's act for the agent that asked, as an OpenAI completion.

terminus-2 expects commands as JSON (or XML) text and asks for confirmation of "complete". mini-swe-agent expects tool
calls and a final command. Other agents with tools stop at an answer without a tool call. The conversation shows which
agent asked.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from seatrial.scripted_models.scripts import SUBMISSION, Act, View, text_of

SUBMIT = f"echo {SUBMISSION}"
"""The command that ends a task of mini-swe-agent."""
MANY_COMMANDS = "execute_commands"
"""A tool with this suffix takes a list of commands; any other takes one."""
_CHARS_PER_TOKEN = 4
_PIECE = 40


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a model."""

    id: str
    model: str
    text: str
    command: str | None
    """The command of a tool call, if the agent uses tools."""
    prompt_tokens: int
    created: int
    tool: str = "bash"

    @property
    def usage(self) -> dict[str, int]:
        completion = max(len(self.text + (self.command or "")) // _CHARS_PER_TOKEN, 1)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
        }

    def whole(self, *, logprobs: bool = False, token_ids: bool = False) -> dict[str, Any]:
        """``logprobs`` and ``token_ids``: as OpenAI and vLLM give them, if a request asks for them."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.command is not None:
            message["tool_calls"] = [self._tool_call()]
        choice = {"index": 0, "message": message, "finish_reason": self._finish_reason, "logprobs": None}
        choice |= _tokens(self.text, logprobs=logprobs, token_ids=token_ids)
        return self._envelope("chat.completion", [choice]) | self._prompt(token_ids) | {"usage": self.usage}

    async def pieces(
        self, *, with_usage: bool, logprobs: bool = False, token_ids: bool = False
    ) -> AsyncIterator[dict[str, Any]]:
        kind = "chat.completion.chunk"
        yield self._envelope(kind, [_delta({"role": "assistant", "content": ""})]) | self._prompt(token_ids)
        for start in range(0, len(self.text), _PIECE):
            text = self.text[start : start + _PIECE]
            told = _tokens(text, logprobs=logprobs, token_ids=token_ids)
            yield self._envelope(kind, [_delta({"content": text}) | told])
        if self.command is not None:
            yield self._envelope(kind, [_delta({"tool_calls": [{"index": 0, **self._tool_call()}]})])
        yield self._envelope(kind, [_delta({}, self._finish_reason)])
        if with_usage:
            yield self._envelope(kind, []) | {"usage": self.usage}

    def _prompt(self, token_ids: bool) -> dict[str, Any]:
        return {"prompt_token_ids": list(range(self.prompt_tokens))} if token_ids else {}

    @property
    def _finish_reason(self) -> str:
        return "stop" if self.command is None else "tool_calls"

    def _tool_call(self) -> dict[str, Any]:
        order = {"commands": [self.command]} if self.tool.endswith(MANY_COMMANDS) else {"command": self.command}
        function = {"name": self.tool, "arguments": json.dumps(order)}
        return {"id": f"call-{self.id}", "type": "function", "function": function}

    def _envelope(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}


def complete(view: View, act: Act, model: str, number: int) -> Completion:
    """The act in the format of the agent of this conversation."""
    command = None
    if view.tools:
        ends_in_words = act.done and not view.wants_submission
        text, command = act.why, None if ends_in_words else _shell_command(act)
    elif "<keystrokes" in view.instruction and '"keystrokes"' not in view.instruction:
        text = _terminus_xml(act)
    else:
        text = _terminus_json(act)
    prompt = sum(len(text_of(message)) for message in view.messages) // _CHARS_PER_TOKEN
    return Completion(
        id=f"scripted-{number}",
        model=model,
        text=text,
        command=command,
        prompt_tokens=max(prompt, 1),
        created=int(time.time()),
        tool=view.tool,
    )


def _terminus_json(act: Act) -> str:
    commands = [{"keystrokes": f"{line}\n", "duration": act.wait} for line in act.commands]
    if not commands and not act.done:
        commands = [{"keystrokes": "", "duration": act.wait}]
    plan = "Mark the task as complete." if act.done else "Type the commands and look at the screen."
    content = {"analysis": act.why, "plan": plan, "commands": commands, "task_complete": act.done}
    return json.dumps(content, indent=2)


def _terminus_xml(act: Act) -> str:
    keys = "\n".join(f'<keystrokes duration="{act.wait}">{escape(line)}\n</keystrokes>' for line in act.commands) or (
        "" if act.done else f'<keystrokes duration="{act.wait}"></keystrokes>'
    )
    done = "\n<task_complete>true</task_complete>" if act.done else ""
    return (
        f"<response>\n<analysis>{escape(act.why)}</analysis>\n<plan>Go on.</plan>\n"
        f"<commands>\n{keys}\n</commands>{done}\n</response>"
    )


def _shell_command(act: Act) -> str:
    if act.done:
        return SUBMIT
    return "\n".join(act.commands) or f"sleep {act.wait}"


def _tokens(text: str, *, logprobs: bool, token_ids: bool) -> dict[str, Any]:
    """A token is four characters. Its id and its probability follow from them, so equal answers have equal ones."""
    words = [text[start : start + _CHARS_PER_TOKEN] for start in range(0, len(text), _CHARS_PER_TOKEN)]
    ids = [zlib.crc32(word.encode()) % 100_000 for word in words]
    told = [
        {"token": word, "logprob": -(id_ % 1000) / 100, "top_logprobs": []}
        for word, id_ in zip(words, ids, strict=True)
    ]
    return ({"logprobs": {"content": told}} if logprobs else {}) | ({"token_ids": ids} if token_ids else {})


def _delta(content: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": content, "finish_reason": finish_reason}
