"""What an agent and its model said to each other, as plain messages, read from the trajectory that the attempt left.

Trajectories are Harbor's ATIF, one file for each step of the task. They were written inside a sandbox's reach, so
whatever does not look like one is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from seatrial.domain.frozen import Frozen
from seatrial.engine.attempt_files import AttemptFiles, KeptFiles
from seatrial.errors import Conflict

_FILE = "agent/trajectory.json"
_LARGEST = 64 << 20
_ROLES = {"agent": "assistant", "user": "user", "system": "system"}


class Message(Frozen):
    role: str
    content: str


async def conversation(files: AttemptFiles, kept: KeptFiles) -> tuple[Message, ...]:
    """In order; empty for an agent that keeps no trajectory."""
    found = sorted((file for file in kept.files if file.path.endswith(_FILE)), key=lambda file: file.path)
    messages: list[Message] = []
    for file in found:
        try:
            messages.extend(_messages(await files.read_json(kept, file, _LARGEST)))
        except Conflict:
            continue  # too large, or torn by whatever ended the attempt
    return tuple(messages)


def _messages(trajectory: Any) -> Iterator[Message]:
    steps = trajectory.get("steps") if isinstance(trajectory, Mapping) else None
    for step in steps if isinstance(steps, list) else []:
        if not isinstance(step, Mapping) or step.get("source") not in _ROLES:
            continue
        said = "\n".join(part for part in (_text(step.get("message")), *_calls(step.get("tool_calls"))) if part)
        yield Message(role=_ROLES[step["source"]], content=said)
        if observed := _observed(step.get("observation")):
            yield Message(role="user", content=observed)


def _calls(calls: Any) -> Iterator[str]:
    """What the agent did besides talking, one line each."""
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, Mapping):
            arguments = json.dumps(call.get("arguments"), ensure_ascii=False, default=str)
            yield f"{call.get('function_name', 'call')}({arguments})"


def _observed(observation: Any) -> str:
    """What came back: the terminal's screen, the tool's output."""
    results = observation.get("results") if isinstance(observation, Mapping) else None
    found = (result for result in (results if isinstance(results, list) else []) if isinstance(result, Mapping))
    return "\n".join(text for result in found if (text := _text(result.get("content"))))


def _text(content: Any) -> str:
    """A text, or the texts of a message in parts."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("text"))
    return content if isinstance(content, str) else ""
