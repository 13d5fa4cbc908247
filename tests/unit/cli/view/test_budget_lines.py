"""What the command line says of budgets and of what was spent."""

from __future__ import annotations

import json

import pytest

from seatrial.cli.backend.backend import Plan
from seatrial.cli.view.progress import show_progress, spent_text
from seatrial.cli.view.summary import print_plan
from seatrial.cli.view.trial_text import trial_lines
from seatrial.domain.job import Job, JobCounts
from seatrial.domain.model_calls.budget import Amount, Budget, Cap
from seatrial.domain.reports.progress import Progress
from seatrial.domain.result import Result, Usage
from seatrial.domain.suffered import Suffered
from seatrial.domain.trial import Mark, Outcome
from seatrial.ports.store import TrialRow
from tests.contracts.store.samples import a_spec, a_task
from tests.unit.engine.live.test_tail import TRIAL

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


@pytest.mark.parametrize(
    ("spent", "cap", "text"),
    [
        (Amount(), Cap(dollars=5), ""),
        (Amount.of(0.42, 12_300, 31), Cap(dollars=5, calls=100), "$0.42 of $5.00, 12,300 tokens, 31 of 100 calls"),
        (Amount.of(0.0, 70, 1), Cap(), "70 tokens, 1 call"),
        (Amount.of(0.0, 70, 1), Cap(calls=1), "70 tokens, 1 of 1 calls"),
        (Amount.of(0.0, 70, 1), Cap(dollars=1, tokens=1000), "$0.00 of $1.00, 70 of 1,000 tokens, 1 call"),
    ],
)
def test_a_running_job_shows_what_it_has_spent(spent: Amount, cap: Cap, text: str) -> None:
    assert spent_text(spent, cap) == text


def test_the_line_of_a_running_job_has_its_spending(capsys: pytest.CaptureFixture[str]) -> None:
    job = Job(id=1, spec=a_spec().model_copy(update={"budget": BUDGET}), created_at=TRIAL.created_at)
    with show_progress(job, quiet=False) as show:
        show(JobCounts(passed=1), Progress(ended=1), Amount.of(0.25, 1000, 2))
    assert "1 passed · $0.25 of $5.00, 1,000 tokens, 2 calls" in capsys.readouterr().err


def test_a_trial_shows_its_calls_and_how_long_they_waited() -> None:
    usage = Usage(
        input_tokens=900, cached_tokens=600, output_tokens=80, reasoning_tokens=30, cost_usd=0.5,
        model_calls=12, retries=3, first_token_sec=0.5, rate_limited_sec=42.0,
    )  # fmt: skip
    marks = (Mark.THROTTLED, Mark.OVER_BUDGET)
    suffered = Suffered(pace_wait_sec=42.0)
    result = Result(outcome=Outcome.FAILED, rewards={"reward": 0.0}, usage=usage, marks=marks, suffered=suffered)
    lines = list(trial_lines(TrialRow(trial=TRIAL, result=result), []))
    assert "marks    throttled (42.0 s), over_budget" in lines
    assert "tokens   900 in (600 cached), 80 out (30 reasoning), $0.5000" in lines
    assert "calls    12, 3 sent again, first token after 500 ms on average" in lines


def test_a_trial_without_calls_says_nothing_of_them() -> None:
    lines = list(trial_lines(TrialRow(trial=TRIAL, result=Result(outcome=Outcome.PASSED)), []))
    assert not any(line.startswith(("calls", "tokens", "marks")) for line in lines)
