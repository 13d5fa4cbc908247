"""Where two trials diverge: the first step at which their agents acted differently, and the tests with different
results.

Pure. Trajectories are ATIF documents from untrusted agents; nothing about their structure is assumed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.domain.frozen import Frozen
from seatrial.domain.result import TestResult, TestStatus

_LONGEST = 4000


class StepView(Frozen):
    """The agent's action in one step."""

    step: int
    """Counted from 1, over the agent's own steps."""
    message: str
    actions: tuple[str, ...] = ()


class TestFlip(Frozen):
    """A test with different results. ``None``: it did not run."""

    __test__ = False  # not a pytest class

    name: str
    left: TestStatus | None
    right: TestStatus | None


class Divergence(Frozen):
    step: int | None
    """The first step with different actions; ``None`` if there is none."""
    left: StepView | None = None
    """``None``: this side had already ended."""
    right: StepView | None = None
    steps_left: int = 0
    steps_right: int = 0
    tests: tuple[TestFlip, ...] = ()


def diverge(left: Any, right: Any, tests_left: Sequence[TestResult], tests_right: Sequence[TestResult]) -> Divergence:
    """``left`` and ``right`` are trajectories, or ``None`` if a try left none."""
    mine, other = agent_steps(left), agent_steps(right)
    flips = test_flips(tests_left, tests_right)
    for index in range(max(len(mine), len(other))):
        one = mine[index] if index < len(mine) else None
        two = other[index] if index < len(other) else None
        if one is None or two is None or _compared(one) != _compared(two):
            return Divergence(
                step=index + 1, left=one, right=two, steps_left=len(mine), steps_right=len(other), tests=flips
            )
    return Divergence(step=None, steps_left=len(mine), steps_right=len(other), tests=flips)


def agent_steps(trajectory: Any) -> list[StepView]:
    steps = trajectory.get("steps") if isinstance(trajectory, Mapping) else None
    listed = steps if isinstance(steps, list) else []
    own = [step for step in listed if isinstance(step, Mapping) and step.get("source") == "agent"]
    return [_view(number, step) for number, step in enumerate(own, start=1)]


def test_flips(left: Sequence[TestResult], right: Sequence[TestResult]) -> tuple[TestFlip, ...]:
    mine, other = ({test.name: test.status for test in tests} for tests in (left, right))
    names = dict.fromkeys((*mine, *other))
    return tuple(
        TestFlip(name=name, left=mine.get(name), right=other.get(name))
        for name in names
        if mine.get(name) is not other.get(name)
    )


test_flips.__test__ = False  # type: ignore[attr-defined]


def _compared(step: StepView) -> object:
    """What must be equal: the actions, or the text if there are no actions."""
    return step.actions or step.message


def _view(number: int, step: Mapping[str, Any]) -> StepView:
    given = step.get("tool_calls")
    calls = [call for call in given if isinstance(call, Mapping)] if isinstance(given, list) else []
    actions = [f"{call.get('function_name', '')} {_text(call.get('arguments'))}".strip() for call in calls]
    return StepView(
        step=number, message=_text(step.get("message"))[:_LONGEST], actions=tuple(act[:_LONGEST] for act in actions)
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True) if value is not None else ""
