"""What passes and what does not."""

from __future__ import annotations

import math

import pytest

from seatrial.domain.result import deciding_reward, grade
from seatrial.domain.trial import Outcome


@pytest.mark.parametrize(
    ("rewards", "outcome"),
    [
        ({"reward": 1.0}, Outcome.PASSED),
        ({"reward": 1.5}, Outcome.PASSED),
        ({"reward": 0.99}, Outcome.FAILED),
        ({"reward": 0.0}, Outcome.FAILED),
        ({"reward": 1.0, "style": 0.2}, Outcome.PASSED),
        ({"reward": 0.5, "style": 1.0}, Outcome.FAILED),
        ({"correct": 1.0, "fast": 1.0}, Outcome.PASSED),
        ({"correct": 1.0, "fast": 0.9}, Outcome.FAILED),
    ],
)
def test_the_deciding_value_is_reward_or_else_all(rewards: dict[str, float], outcome: Outcome) -> None:
    assert grade(rewards) is outcome


def test_no_reward_is_no_grade() -> None:
    assert deciding_reward({}) is None
    with pytest.raises(ValueError, match="at least one"):
        grade({})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_not_finite_is_no_grade(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        grade({"reward": value})
