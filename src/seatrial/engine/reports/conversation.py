"""The conversation of an agent and its model as plain messages, read from the trajectories of a try.

There is one trajectory for each step of the task. Used by AgentCompass's API.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from seatrial.domain.frozen import Frozen
from seatrial.engine.reports.atif import ROLES, items, results, spoken_steps, text_of
from seatrial.engine.trials.trial_files import KeptFiles, TryFiles
from seatrial.errors import Conflict

_FILE = "agent/trajectory.json"
_LARGEST = 64 << 20


class Message(Frozen):
    role: str
    content: str


async def conversation(files: TryFiles, kept: KeptFiles) -> tuple[Message, ...]:
    """In order. Empty if the agent wrote no trajectory."""
    found = sorted((file for file in kept.files if file.path.endswith(_FILE)), key=lambda file: file.path)
    messages: list[Message] = []
    for file in found:
        try:
            messages.extend(_messages(await files.read_json(kept, file, _LARGEST)))
        except (Conflict, RecursionError):
            continue  # too large, too deep, or incomplete because the try was stopped
    return tuple(messages)


def _messages(trajectory: Any) -> Iterator[Message]:
    for step in spoken_steps(trajectory):
        said = "\n".join(part for part in (text_of(step.get("message")), *_calls(step)) if part)
        yield Message(role=ROLES[step["source"]], content=said)
        observed = (result for result in results(step) if isinstance(result, Mapping))
        if texts := [text for result in observed if (text := text_of(result.get("content")))]:
            yield Message(role="user", content="\n".join(texts))


def _calls(step: Mapping[str, Any]) -> Iterator[str]:
    """The tool calls of a step, one line each."""
    for call in items(step.get("tool_calls")):
        if isinstance(call, Mapping):
            arguments = json.dumps(call.get("arguments"), ensure_ascii=False, default=str)
            yield f"{call.get('function_name', 'call')}({arguments})"
