"""Values that are made without being checked are the same as those that are."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from seatrial.domain.frozen import trusted
from seatrial.domain.job import AgentSpec, Job, JobCounts, JobSpec, StateCounts
from seatrial.domain.reports.progress import Progress
from seatrial.domain.reports.score import ScoreLine
from seatrial.domain.result import Result, Try, Usage
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Cause, Mark, Outcome, Phase, Trial, TrialState
from seatrial.engine.reports.listing import JobLine, ScoreLines
from seatrial.ports.store import JobTotals, TrialHistory, TrialSummary
from seatrial.shapes.budgets import Spent
from seatrial.shapes.jobs import JobDetail, JobItem, Totals
from seatrial.shapes.tasks import TaskItem
from seatrial.shapes.trials import AttemptItem, TrialCounts, TrialDetail, TrialItem

NOW = datetime(2026, 5, 1, tzinfo=UTC)
TASK = TaskRef(name="hello", digest=f"sha256:{0:064x}")
TRIAL: dict[str, Any] = {
    "id": 7,
    "job_id": 3,
    "task": TASK,
    "agent_index": 0,
    "agent": "oracle",
    "model": None,
    "attempt": 1,
    "state": TrialState.RUNNING,
    "phase": Phase.AGENT,
    "try_number": 2,
    "created_at": NOW,
}


def test_they_are_equal_and_behave_alike() -> None:
    checked = Trial(**TRIAL)
    made = trusted(Trial, dict(checked))
    assert made == checked
    assert hash(made) == hash(checked)
    assert made.model_dump_json() == checked.model_dump_json()
    changed = made.model_copy(update={"try_number": 3})
    assert (changed.try_number, made.try_number) == (3, 2)
    with pytest.raises(ValidationError):
        made.try_number = 4  # type: ignore[misc]


def test_they_hold_what_pydantic_holds_in_a_value() -> None:
    """``trusted`` fills pydantic's slots itself. If an upgrade changed them, mend it, or validate instead."""
    assert set(BaseModel.__slots__) == {
        *("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
    }
    whole = dict(Trial(**TRIAL))
    checked, made = Trial(**whole), trusted(Trial, dict(whole))
    assert made.__getstate__() == checked.__getstate__()
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == checked
    for kind in (TrialItem, TrialDetail, TrialSummary, Job, JobItem, JobDetail, TaskItem, TaskRef, Try, Spent):
        assert not kind.__private_attributes__, f"{kind.__name__} has private attributes, which ``trusted`` leaves out"


def test_they_share_nothing_that_can_be_changed() -> None:
    one, other = (trusted(TrialCounts, dict(TrialCounts.of(JobCounts(passed=1)))) for _ in range(2))
    one.passed = 5
    assert (one.passed, other.passed) == (5, 1)
    assert one.model_fields_set == other.model_fields_set == set(TrialCounts.model_fields)
    copied = one.model_copy(update={"unknown": 1})
    assert "unknown" in copied.model_fields_set
    assert "unknown" not in one.model_fields_set


def test_a_trial_on_the_wire_has_every_field_in_its_type() -> None:
    trial = Trial(**TRIAL)
    ended = trial.model_copy(update={"state": TrialState.ENDED, "outcome": Outcome.ERROR, "cause": Cause.LLM})
    for one in (trial, ended):
        summary = TrialSummary(
            trial=one, reward=0.5, marks=(Mark.MEMORY_KILL,), seconds=1.5, input_tokens=1, output_tokens=2, cost_usd=0.1
        )
        assert_valid(TrialItem.of(summary))


@pytest.mark.parametrize("result", [None, Result(outcome=Outcome.PASSED, rewards={"reward": 1.0}, usage=Usage())])
def test_a_trial_in_full_has_every_field_in_its_type(result: Result | None) -> None:
    tries = (
        Try(trial_id=7, number=1, worker="w", started_at=NOW, ended_at=NOW, result=result),
        Try(trial_id=7, number=2, worker="w", started_at=NOW),
    )
    history = TrialHistory(trial=Trial(**TRIAL), agent=AgentSpec(name="oracle"), tries=tries)
    detail = TrialDetail.of(history)
    assert_valid(detail)
    for item in detail.attempts:
        assert_valid(item)
    assert (detail.result, detail.reward) == (result, 1.0 if result else None)
    assert_valid(AttemptItem.of(tries[1]))


def test_a_task_on_the_wire_has_every_field_in_its_type() -> None:
    task = Task(digest=TASK.digest, name="hello", format=TaskFormat.HARBOR, instruction="Say it.", tags=("a",))
    assert_valid(TaskItem.of(task))


def test_a_job_on_the_wire_has_every_field_in_its_type() -> None:
    spec = JobSpec(tasks=(TASK,), agents=(AgentSpec(name="oracle"),), labels={"team": "a"})
    counts, totals = (
        JobCounts(passed=1, error=2, added=StateCounts(failed=1)),
        JobTotals(seconds=2.0, cost_usd=0.5, started_at=NOW),
    )
    job = Job(id=1, spec=spec, created_at=NOW)
    one = ScoreLine(label="oracle", value=0.5, low=0.1, high=0.9, coverage=1.0)
    for scores in (None, ScoreLines(items=(one,)), ScoreLines(items=(one, one))):
        line = JobLine(job=job, counts=counts, totals=totals, scores=scores)
        assert_valid(JobItem.of(line))
        assert_valid(
            JobDetail.of(
                line, spec=spec, progress=Progress(ended=3, planned=3), obstacle="", spending=Spent(), budgets=[]
            )
        )
    assert_valid(TrialCounts.of(counts))
    assert_valid(Totals.of(totals))


def assert_valid(made: BaseModel) -> None:
    """Checking it anew changes nothing; a field that is missing or of another type would show."""
    assert type(made)(**dict(made)) == made
    assert type(made).model_validate_json(made.model_dump_json(), strict=False) == made
    assert set(dict(made)) == set(type(made).model_fields)
