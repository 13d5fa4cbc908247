"""Converts ended trials into training data for ``seatrial export``: chat messages or trajectories, with a reward."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from seatrial.engine.reports.atif import ROLES, items, results, spoken_steps, text_of
from seatrial.ports.store import TrialRow

Chat = list[dict[str, Any]]
"""Messages in the format of OpenAI's API."""


Tokens = Sequence[Mapping[str, Any]]
"""Token ids and logprobs of a trial's calls, in their order, as far as the model's server gave them."""


def training_row(row: TrialRow, trajectory: Any, tokens: Tokens = ()) -> dict[str, Any] | None:
    """``prompt``, ``completion``, ``reward``, ``task``, ``info`` and ``tokens`` if there are some; ``None`` if the
    model sent no message."""
    prompt, completion = conversation(trajectory)
    if not completion:
        return None
    return {
        "prompt": prompt,
        "completion": completion,
        "reward": row.result.reward if row.result else None,
        "task": row.trial.task.name,
        "info": facts(row),
        **_told(tokens),
    }


def scored_trajectory(row: TrialRow, trajectory: Any, tokens: Tokens = ()) -> dict[str, Any] | None:
    """The trajectory as it is, with the reward and facts of the trial in ``extra``; ``None`` if it has no steps."""
    if not _steps(trajectory):
        return None
    extra = trajectory.get("extra")
    kept = dict(extra) if isinstance(extra, Mapping) else {}
    reward = row.result.reward if row.result else None
    more = {"reward": reward, "task": row.trial.task.name, "info": facts(row), **_told(tokens)}
    return {**trajectory, "extra": {**kept, **more}}


def read_tokens(content: bytes) -> list[dict[str, Any]]:
    """The lines of ``calls-tokens.jsonl``. Whatever is not one is skipped."""
    found = []
    for line in content.splitlines():
        with suppress(ValueError, RecursionError):
            told = json.loads(line)
            if isinstance(told, dict) and isinstance(told.get("choices"), list):
                found.append(told)
    return found


def _told(tokens: Tokens) -> dict[str, Any]:
    return {"tokens": list(tokens)} if tokens else {}


def facts(row: TrialRow) -> dict[str, Any]:
    """The origin of a row, and the full result of the verifier."""
    trial, result = row.trial, row.result
    return {
        "job": trial.job_id,
        "trial": trial.id,
        "attempt": trial.attempt,
        "reruns": trial.reruns,
        "task_digest": trial.task.digest,
        "agent": trial.agent,
        "model": trial.model,
        "outcome": trial.outcome,
        "cause": trial.cause,
        "rewards": dict(result.rewards) if result else {},
        "tests": [test.model_dump(mode="json", exclude={"message"}) for test in result.tests] if result else [],
        "marks": list(result.marks) if result else [],
        "usage": result.usage.model_dump(mode="json", exclude_none=True) if result else {},
        **({"replays": result.replay.trial} if result and result.replay else {}),
    }


def conversation(trajectory: Any) -> tuple[Chat, Chat]:
    """The messages before the model's first message, and all messages from there on.

    Steps that repeat an earlier context are left out, as ATIF requires for training data."""
    messages = [message for step in _steps(trajectory) for message in _messages(step)]
    spoke = next((index for index, message in enumerate(messages) if message["role"] == "assistant"), len(messages))
    return messages[:spoke], messages[spoke:]


def _steps(trajectory: Any) -> list[Mapping[str, Any]]:
    return [step for step in spoken_steps(trajectory) if not step.get("is_copied_context")]


def _messages(step: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    message: dict[str, Any] = {"role": ROLES[step["source"]], "content": text_of(step.get("message"))}
    if isinstance(step.get("reasoning_content"), str):
        message["reasoning_content"] = step["reasoning_content"]
    calls = [call for call in items(step.get("tool_calls")) if isinstance(call, Mapping)]
    if calls and message["role"] == "assistant":
        message["tool_calls"] = [_call(call) for call in calls]
    yield message
    yield from _observed(step, [str(call.get("tool_call_id", "")) for call in calls])


def _observed(step: Mapping[str, Any], calls: list[str]) -> Iterator[dict[str, Any]]:
    """One message for each call, as chat templates require. Results that belong to no call become a user message."""
    answers: dict[str, list[str]] = {call: [] for call in calls}
    loose: list[str] = []
    for result in results(step):
        text = text_of(result.get("content")) if isinstance(result, Mapping) else ""
        named = str(result.get("source_call_id")) if isinstance(result, Mapping) else ""
        answers.get(named, answers[calls[-1]] if calls else loose).append(text)
    for call, texts in answers.items():
        yield {"role": "tool", "tool_call_id": call, "content": "\n".join(texts)}
    if any(loose):
        yield {"role": "user", "content": "\n".join(loose)}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call.get("arguments") or {}, ensure_ascii=False, default=str)
    function = {"name": str(call.get("function_name", "")), "arguments": arguments}
    return {"id": str(call.get("tool_call_id", "")), "type": "function", "function": function}
