"""Where two attempts went different ways."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.domain.comparisons.divergence import diverge
from seatrial.domain.result import TestResult, TestStatus


def trajectory(*commands: str) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"source": "user", "message": "go"}]
    for command in commands:
        call = {"function_name": "bash", "arguments": {"command": command}}
        steps.append({"source": "agent", "message": f"I will {command}", "tool_calls": [call]})
    return {"steps": steps}


def test_the_first_step_with_other_actions() -> None:
    found = diverge(trajectory("a", "b", "c"), trajectory("a", "x", "c"), (), ())
    assert found.step == 2
    assert found.left is not None and '"b"' in found.left.actions[0]
    assert found.right is not None and '"x"' in found.right.actions[0]
    assert (found.steps_left, found.steps_right) == (3, 3)


def test_one_that_stops_earlier_differs_where_the_other_goes_on() -> None:
    found = diverge(trajectory("a"), trajectory("a", "b"), (), ())
    assert (found.step, found.left) == (2, None)
    assert found.right is not None


def test_words_alone_do_not_count_where_there_are_actions() -> None:
    other = trajectory("a")
    other["steps"][1]["message"] = "Let me see."
    assert diverge(trajectory("a"), other, (), ()).step is None


def test_a_difference_far_into_an_action_counts() -> None:
    far = "x" * 10_000
    found = diverge(trajectory("a", f"{far}1"), trajectory("a", f"{far}2"), (), ())
    assert found.step == 2
    assert found.left is not None and len(found.left.actions[0]) == 4000, "and what is shown of it is short"
    assert found.left.number == 3, "as on the trial's page, where the user's step is the first"
    assert [row.same for row in found.alignment.rows] == [True, True, False]
    assert found.alignment.first_difference == 2


@pytest.mark.parametrize("nonsense", [None, [], "x", {"steps": 3}, {"steps": [1, {"source": "agent"}]}, {}])
def test_nothing_is_taken_for_granted(nonsense: Any) -> None:
    found = diverge(nonsense, trajectory("a"), (), ())
    assert found.step == 1


def test_tests_that_turned_out_differently() -> None:
    passed, failed = TestStatus.PASSED, TestStatus.FAILED
    left = (TestResult(name="same", status=passed), TestResult(name="flips", status=passed))
    right = (*(TestResult(name=name, status=failed) for name in ("flips", "new")), left[0])
    found = diverge(None, None, left, right)
    assert [(flip.name, flip.left, flip.right) for flip in found.tests] == [
        ("flips", passed, failed),
        ("new", None, failed),
    ]
