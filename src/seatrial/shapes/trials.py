"""Trials, their results, tries and files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

from seatrial.domain.frozen import common_values, trusted
from seatrial.domain.job import AgentSpec, StateCounts
from seatrial.domain.result import FilesLeftOut, Result, Spent, StoredFile, TestResult, Try
from seatrial.domain.suffered import Suffered
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Mark, Outcome, Phase, Trial, TrialState
from seatrial.ports.store import TrialHistory, TrialRow, TrialSummary
from seatrial.shapes.answers import Listing, Shape
from seatrial.shapes.budgets import CapState


class TrialCounts(Shape):
    """Counts of trials by state and outcome."""

    held: int
    queued: int
    running: int
    passed: int
    failed: int
    error: int
    cancelled: int
    total: int

    @classmethod
    def of(cls, counts: StateCounts) -> TrialCounts:
        return trusted(cls, {**common_values(cls, counts), "total": counts.total})


class _TrialShape(Shape):
    """Fields of every trial model. The API keeps the names it began with: ``repeat`` is the attempt, ``attempt`` is
    the try."""

    id: int
    job_id: int
    task: TaskRef
    agent: str
    model: str | None
    agent_index: int
    """Index of the job's configuration."""
    repeat: int
    """Which attempt at the task: 1 … attempts of the job; above that it was added."""
    reruns: int | None
    """The planned trial that an added attempt runs again; null for a planned trial. Added attempts are not part of the
    score."""
    state: TrialState
    phase: Phase | None
    outcome: Outcome | None
    cause: Cause | None
    attempt: int
    """Number of tries so far."""
    worker: str | None
    cancel_requested: bool
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class TrialItem(_TrialShape):
    """A trial in a list."""

    reward: float | None
    """From the last try with a result, like all fields below."""
    marks: list[Mark]
    seconds: float | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    spent: Spent
    """What all tries used together."""
    suffered: Suffered
    """What held it up in its last try: throttled processors, memory at its limit, waiting for the model."""

    @classmethod
    def of(cls, summary: TrialSummary, **more: Any) -> Self:
        """``more``: further fields of a subclass."""
        numbers = {**common_values(cls, summary), "marks": list(summary.marks)}
        return trusted(cls, {**trial_fields(summary.trial), **numbers, **more})


class TrialPage(Listing[TrialItem]):
    """One page of trials, newest first."""


def trial_fields(trial: Trial) -> dict[str, Any]:
    """The values of ``_TrialShape``."""
    return common_values(_TrialShape, trial) | {"repeat": trial.attempt, "attempt": trial.try_number}


class AttemptItem(Shape):
    """One try of a trial."""

    number: int
    worker: str | None
    started_at: datetime
    ended_at: datetime | None
    outcome: Outcome | None
    cause: Cause | None
    message: str
    seconds: float | None

    @classmethod
    def of(cls, a_try: Try) -> AttemptItem:
        result = a_try.result
        values = common_values(cls, a_try) | {"outcome": None, "cause": None, "message": "", "seconds": None}
        return trusted(cls, values | (common_values(cls, result) if result else {}))


class TrialResult(_TrialShape):
    """A trial with the result of its last ended try."""

    result: Result | None

    @classmethod
    def of(cls, row: TrialRow) -> TrialResult:
        return trusted(cls, {**trial_fields(row.trial), "result": row.result})


class ResultPage(Listing[TrialResult]):
    """One page of trials with their results, in planned order."""


class TrialDetail(_TrialShape):
    """A trial with the result of its last ended try, and every try."""

    agent_spec: AgentSpec
    reward: float | None
    result: Result | None
    spent: Spent
    """What all tries used together."""
    attempts: list[AttemptItem]
    budgets: list[CapState] = []
    """The caps that hold for it, of the trial, its job and the day, with what was spent of each. Empty once it has
    ended."""

    @classmethod
    def of(cls, history: TrialHistory, budgets: Sequence[CapState] = ()) -> TrialDetail:
        result = history.result
        values = {
            **trial_fields(history.trial),
            "agent_spec": history.agent,
            "reward": result.reward if result else None,
            "result": result,
            "spent": history.spent,
            "attempts": [AttemptItem.of(a_try) for a_try in history.tries],
            "budgets": list(budgets),
        }
        return trusted(cls, values)


class TestList(Shape):
    """Results of the verifier's tests."""

    __test__ = False  # not a pytest class

    attempt: int
    items: list[TestResult]


class FileList(Shape):
    """Files of one try."""

    attempt: int
    items: list[StoredFile]
    left_out: FilesLeftOut | None = None
    """Files that were not saved, and why."""


class LogItem(Shape):
    name: str
    size: int


class LogList(Shape):
    attempt: int
    items: list[LogItem]


class Gap(Shape):
    """Some live output of a trial was dropped because it was written faster than it was read. The files contain all
    of it."""

    trial_id: int
