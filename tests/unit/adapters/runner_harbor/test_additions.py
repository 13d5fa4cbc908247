"""What is added to Harbor's result: waits for the model's service, and how an end by it or by a budget counts."""

from __future__ import annotations

import pytest

from seatrial.adapters.runner_harbor.additions import graded_over_budget, unless_given_up, with_waits
from seatrial.domain.result import Result
from seatrial.domain.trial import Cause, Mark, Outcome
from seatrial.engine.model_patience import ModelHealth
from seatrial.errors import ModelFault

RESULT = Result(outcome=Outcome.PASSED, rewards={"reward": 1.0})


def test_a_long_wait_is_told_and_marked() -> None:
    told = with_waits(RESULT, ModelHealth(pace_wait_sec=12.34567))
    assert told.suffered.pace_wait_sec == 12.346 and told.marks == (Mark.THROTTLED,)
    assert told.outcome is Outcome.PASSED and told.rewards == RESULT.rewards


def test_a_short_wait_is_told_and_not_marked() -> None:
    told = with_waits(RESULT, ModelHealth(pace_wait_sec=0.25))
    assert told.suffered.pace_wait_sec == 0.25 and told.marks == ()


@pytest.mark.parametrize("health", [None, ModelHealth()])
def test_without_a_wait_nothing_is_told(health: ModelHealth | None) -> None:
    assert with_waits(RESULT, health) == RESULT


def test_an_agent_whose_last_call_got_no_answer_has_not_failed() -> None:
    failed, passed = Result(outcome=Outcome.FAILED, rewards={"reward": 0.0}), Result(outcome=Outcome.PASSED)
    gone = ModelHealth(given_up=ModelFault("The model's service failed 3 times within 9 s: HTTP 503"))
    assert unless_given_up(failed, gone).cause is Cause.LLM and "HTTP 503" in unless_given_up(failed, gone).message
    assert unless_given_up(passed, gone) == passed and unless_given_up(failed, ModelHealth()) == failed


def test_a_trial_over_its_budget_is_graded() -> None:
    voided = Result(outcome=Outcome.ERROR, cause=Cause.LLM, rewards={"reward": 0.0}, message="no credit")
    assert graded_over_budget(voided).outcome is Outcome.FAILED and graded_over_budget(voided).cause is None
    without = Result(outcome=Outcome.ERROR, cause=Cause.LLM)
    assert graded_over_budget(without) == without
