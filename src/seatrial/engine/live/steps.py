"""Reads the steps of a running agent from its ATIF trajectory, which the agent rewrites after each step.

``engine.live.watch`` calls it. If an agent writes its trajectory only at the end, its steps appear at the end.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.domain.event import EventKind, NewEvent
from seatrial.domain.trial import Trial
from seatrial.engine.trials.redaction import Redaction

_FILES = ("trajectory.json", *(f"trajectory.cont-{number}.json" for number in range(1, 4)))
_LARGEST = 4 << 20
_EVERY_SEC = 1.0
_SHARE = 50
"""A trajectory that takes long to read is read less often, for at most a fiftieth of the time."""
_LONGEST_MESSAGE = 300
_LONGEST_INPUT = 200
_LONGEST_NAME = 100
_MOST_TOOLS = 10
_MOST_AT_ONCE = 200
_NEVER = (0, 0)


@dataclass(slots=True)
class _Seen:
    stamp: tuple[int, int] = _NEVER
    steps: int = 0


class StepLog:
    """The trajectories of one try."""

    def __init__(
        self, trial: Trial, directory: Path, redaction: Redaction, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._timer = timer
        self._trial = trial
        self._redaction = redaction
        self._seen = {f"{directory}/agent/{name}": _Seen() for name in _FILES}
        self._not_before = 0.0
        self.last_command = ""
        """The last call of a tool that was read."""

    def read(self, last: bool = False) -> list[NewEvent]:
        """Blocking. New steps since the last call; at most once a second."""
        started = self._timer()
        if started < self._not_before and not last:
            return []
        events: list[NewEvent] = []
        for path, seen in self._seen.items():
            events += self._new_steps(path, seen)
            if seen.stamp == _NEVER:  # without this file there is no continuation of it
                break
        if events:
            now = self._timer()
            self._not_before = now + max(_EVERY_SEC, _SHARE * (now - started))
        return events

    def _new_steps(self, path: str, seen: _Seen) -> Iterator[NewEvent]:
        content = _changed(path, seen)
        if content is None:
            return
        try:
            steps = json.loads(self._redaction.clean(content))["steps"]
        except (ValueError, KeyError, TypeError, RecursionError):
            seen.stamp = _NEVER  # the agent is writing it
            return
        if not isinstance(steps, list):
            return
        if len(steps) < seen.steps:  # the next step of a task began another trajectory
            seen.steps = 0
        new = steps[seen.steps :][:_MOST_AT_ONCE]
        seen.steps += len(new)
        for step in new:
            if isinstance(step, dict) and not step.get("is_copied_context"):
                data = event_data(step)
                if data["tools"]:
                    call = data["tools"][-1]
                    self.last_command = f"{call['name']}: {call['input']}"
                yield NewEvent(
                    kind=EventKind.TRIAL_STEP,
                    job_id=self._trial.job_id,
                    trial_id=self._trial.id,
                    attempt=self._trial.try_number,
                    data=data,
                )


def event_data(step: dict[str, Any]) -> dict[str, Any]:
    """The part of a step that goes into its event."""
    found = step.get("metrics")
    metrics = found if isinstance(found, dict) else {}
    return {
        "step": _number(step.get("step_id")),
        "source": _plain(step.get("source"))[:_LONGEST_NAME],
        "message": _plain(step.get("message"))[:_LONGEST_MESSAGE],
        "tools": list(_tools(step.get("tool_calls"))),
        "input_tokens": _number(metrics.get("prompt_tokens")),
        "output_tokens": _number(metrics.get("completion_tokens")),
        "cost_usd": _number(metrics.get("cost_usd")),
    }


def _number(value: Any) -> int | float | None:
    """The value if it is a number that a database can store."""
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and -(2**63) < value < 2**63
    return value if usable else None


def _tools(calls: Any) -> Iterator[dict[str, str]]:
    for call in calls[:_MOST_TOOLS] if isinstance(calls, list) else ():
        if isinstance(call, dict):
            arguments = call.get("arguments")
            given = next(iter(arguments.values()), "") if isinstance(arguments, dict) else arguments
            yield {"name": _plain(call.get("function_name"))[:_LONGEST_NAME], "input": _plain(given)[:_LONGEST_INPUT]}


def _plain(value: Any) -> str:
    if isinstance(value, list):
        value = "".join(str(part.get("text") or "") for part in value if isinstance(part, dict))
    text = "" if value is None else _digits(value) if isinstance(value, int) else str(value)
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _digits(number: int) -> str:
    """Python refuses to format very long numbers."""
    return str(number) if abs(number) < 2**63 else "a very long number"


def _changed(path: str, seen: _Seen) -> bytes | None:
    """The whole file, if it changed since the last look."""
    with suppress(OSError):
        status = os.lstat(path)
        stamp = (status.st_mtime_ns, status.st_size)
        if not stat.S_ISREG(status.st_mode) or stamp == seen.stamp or status.st_size > _LARGEST:
            return None
        seen.stamp = stamp
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW)) as file:
            return file.read(_LARGEST)
    return None
