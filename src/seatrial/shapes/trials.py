"""Trials, their results, tries and files."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from seatrial.domain.frozen import trusted
from seatrial.domain.job import AgentSpec, StateCounts
from seatrial.domain.result import FilesLeftOut, Result, Spent, StoredFile, TestResult, Try
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Mark, Outcome, Phase, Trial, TrialState
from seatrial.ports.store import TrialHistory, TrialRow, TrialSummary
from seatrial.shapes.answers import Listing, Shape


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
        values = {
            "held": counts.held,
            "queued": counts.queued,
            "running": counts.running,
            "passed": counts.passed,
            "failed": counts.failed,
            "error": counts.error,
            "cancelled": counts.cancelled,
            "total": counts.total,
        }
        return trusted(cls, values)


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

    @classmethod
    def of(cls, summary: TrialSummary, **more: Any) -> Self:
        """``more``: further fields of a subclass."""
        values = {
            **trial_fields(summary.trial),
            "reward": summary.reward,
            "marks": list(summary.marks),
            "seconds": summary.seconds,
            "input_tokens": summary.input_tokens,
            "output_tokens": summary.output_tokens,
            "cost_usd": summary.cost_usd,
            "spent": summary.spent,
            **more,
        }
        return trusted(cls, values)


class TrialPage(Listing[TrialItem]):
    """One page of trials, newest first."""


def trial_fields(trial: Trial) -> dict[str, Any]:
    """Values for ``_TrialShape``."""
    return {
        "id": trial.id,
        "job_id": trial.job_id,
        "task": trial.task,
        "agent": trial.agent,
        "model": trial.model,
        "agent_index": trial.agent_index,
        "repeat": trial.attempt,
        "reruns": trial.reruns,
        "state": trial.state,
        "phase": trial.phase,
        "outcome": trial.outcome,
        "cause": trial.cause,
        "attempt": trial.try_number,
        "worker": trial.worker,
        "cancel_requested": trial.cancel_requested,
        "created_at": trial.created_at,
        "started_at": trial.started_at,
        "ended_at": trial.ended_at,
    }


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
        values = {
            "number": a_try.number,
            "worker": a_try.worker,
            "started_at": a_try.started_at,
            "ended_at": a_try.ended_at,
            "outcome": result.outcome if result else None,
            "cause": result.cause if result else None,
            "message": result.message if result else "",
            "seconds": result.seconds if result else None,
        }
        return trusted(cls, values)


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

    @classmethod
    def of(cls, history: TrialHistory) -> TrialDetail:
        result = history.result
        values = {
            **trial_fields(history.trial),
            "agent_spec": history.agent,
            "reward": result.reward if result else None,
            "result": result,
            "spent": history.spent,
            "attempts": [AttemptItem.of(a_try) for a_try in history.tries],
        }
        return trusted(cls, values)


class TestList(Shape):
    """Results of the verifier's tests."""

    __test__ = False  # not a pytest class

    attempt: int
    items: list[TestResult]


class FileList(Shape):
    """What one try left."""

    attempt: int
    items: list[StoredFile]
    left_out: FilesLeftOut | None = None
    """What was not kept, and why."""


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
