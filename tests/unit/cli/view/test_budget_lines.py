"""A plan shows its budget, and one without says nothing of it."""

from __future__ import annotations

import json

import pytest

from seatrial.cli.backend.backend import Plan
from seatrial.cli.view.summary import print_plan
from seatrial.domain.budget import Budget, Cap
from tests.contracts.store.samples import a_spec, a_task

BUDGET = Budget(job=Cap(dollars=5), trial=Cap(calls=30))


def planned(budget: Budget) -> Plan:
    return Plan(a_spec().model_copy(update={"budget": budget}), [a_task()])


def test_a_plan_shows_its_budget(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(planned(BUDGET), as_json=False)
    assert "budget $5.00 for the job; 30 calls a trial" in capsys.readouterr().out
    print_plan(planned(BUDGET), as_json=True)
    assert json.loads(capsys.readouterr().out)["budget"] == {"trial": {"calls": 30}, "job": {"dollars": 5.0}}


def test_a_plan_without_a_budget_does_not_name_it(capsys: pytest.CaptureFixture[str]) -> None:
    for as_json in (False, True):
        print_plan(planned(Budget()), as_json)
        assert "budget" not in capsys.readouterr().out
