"""Where two trials diverge: the first step at which their agents acted differently, and the tests with different
results.

Pure. Trajectories are ATIF documents from untrusted agents; nothing about their structure is assumed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from seatrial.domain.comparisons.alignment import AlignedStep, Alignment, align
from seatrial.domain.frozen import Frozen
from seatrial.domain.result import TestResult, TestStatus

_LONGEST = 4000


class StepView(Frozen):
    """The agent's action in one step."""

    step: int
    """Counted from 1, over the agent's own steps."""
    number: int = 0
    """Its number in the trajectory, as on the trial's page."""
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
    alignment: Alignment = Alignment()
    """All steps of both, side by side."""


def diverge(left: Any, right: Any, tests_left: Sequence[TestResult], tests_right: Sequence[TestResult]) -> Divergence:
    """``left`` and ``right`` are trajectories, or ``None`` if a try left none."""
    steps_left, steps_right = aligned_steps(left), aligned_steps(right)
    mine, other = agent_steps(left), agent_steps(right)
    actions = zip_longest(*([step.action for step in steps if step.by_agent] for steps in (steps_left, steps_right)))
    parted = next((place for place, (one, two) in enumerate(actions) if one != two), None)
    return Divergence(
        step=None if parted is None else parted + 1,
        left=mine[parted] if parted is not None and parted < len(mine) else None,
        right=other[parted] if parted is not None and parted < len(other) else None,
        steps_left=len(mine),
        steps_right=len(other),
        tests=test_flips(tests_left, tests_right),
        alignment=align(steps_left, steps_right),
    )


def agent_steps(trajectory: Any) -> list[StepView]:
    listed = enumerate(_steps(trajectory), start=1)
    own = [(place, step) for place, step in listed if isinstance(step, Mapping) and step.get("source") == "agent"]
    return [_view(number, place, step) for number, (place, step) in enumerate(own, start=1)]


def aligned_steps(trajectory: Any) -> list[AlignedStep]:
    """Every step, whoever made it."""
    return [_aligned(step) for step in _steps(trajectory)]


def _steps(trajectory: Any) -> list[Any]:
    steps = trajectory.get("steps") if isinstance(trajectory, Mapping) else None
    return steps if isinstance(steps, list) else []


def _aligned(step: Any) -> AlignedStep:
    """The same are steps with the same actions, or with the same text if there are no actions."""
    if not isinstance(step, Mapping):
        return AlignedStep(source="", action=_text(step))
    action = _actions(step) or _text(step.get("message"))
    return AlignedStep(source=_text(step.get("source")), action=action, output=_text(step.get("observation")))


def test_flips(left: Sequence[TestResult], right: Sequence[TestResult]) -> tuple[TestFlip, ...]:
    mine, other = ({test.name: test.status for test in tests} for tests in (left, right))
    names = dict.fromkeys((*mine, *other))
    return tuple(
        TestFlip(name=name, left=mine.get(name), right=other.get(name))
        for name in names
        if mine.get(name) is not other.get(name)
    )


test_flips.__test__ = False  # type: ignore[attr-defined]


def _view(number: int, place: int, step: Mapping[str, Any]) -> StepView:
    told = step.get("step_id")
    return StepView(
        step=number,
        number=told if isinstance(told, int) and 0 < told < 2**53 else place,
        message=_text(step.get("message"))[:_LONGEST],
        actions=tuple(action[:_LONGEST] for action in _actions(step)),
    )


def _actions(step: Mapping[str, Any]) -> tuple[str, ...]:
    given = step.get("tool_calls")
    calls = [call for call in given if isinstance(call, Mapping)] if isinstance(given, list) else []
    return tuple(f"{call.get('function_name', '')} {_text(call.get('arguments'))}".strip() for call in calls)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True) if value is not None else ""
