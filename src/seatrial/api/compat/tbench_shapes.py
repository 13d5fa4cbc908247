"""TBench Runner's tasks and runs, built from jobs and trials. A task is one upload and one job."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, Field

from seatrial.domain.job import JobCounts, JobStatus, StateCounts
from seatrial.domain.result import Result, TestStatus
from seatrial.domain.trial import Mark, Outcome, Trial, TrialState
from seatrial.engine.reports.listing import JobLine
from seatrial.ports.store import JobFilter, TrialRow

ORIGIN = "tbench-runner"
FILENAME, MODEL, AGENT, HARNESS, DESCRIPTION = "original_filename", "model", "agent", "harness", "description"
"""Job labels that hold the parameters of the upload, unchanged."""


class TaskStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    """Every run ended, in whatever way. Clients of this API wait for exactly this."""
    FAILED = "failed"
    """Part of the vocabulary, and never given, as in the original. Runs tell how they ended."""
    CANCELLED = "cancelled"

    @classmethod
    def of(cls, counts: JobCounts) -> TaskStatus:
        if counts.moving:
            return cls.RUNNING
        if counts.held + counts.added.held:
            return cls.PENDING
        if counts.status is JobStatus.CANCELLED:
            return cls.CANCELLED
        return cls.COMPLETED

    @property
    def filter(self) -> JobFilter | None:
        """The job filter for this status; ``None`` if no task has it."""
        return {
            TaskStatus.PENDING: JobFilter(origin=ORIGIN, waits=True),
            TaskStatus.RUNNING: JobFilter(origin=ORIGIN, waits=False),
            TaskStatus.COMPLETED: JobFilter(origin=ORIGIN, status=JobStatus.COMPLETED),
            TaskStatus.FAILED: None,
            TaskStatus.CANCELLED: JobFilter(origin=ORIGIN, status=JobStatus.CANCELLED),
        }[self]


class RunStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    TIMEOUT = "timeout"

    @classmethod
    def of(cls, trial: Trial, result: Result | None) -> RunStatus:
        match trial.state:
            case TrialState.HELD | TrialState.QUEUED:
                return cls.PENDING
            case TrialState.RUNNING:
                return cls.RUNNING
        match trial.outcome:
            case Outcome.PASSED:
                return cls.PASSED
            case Outcome.FAILED:
                late = result is not None and Mark.AGENT_TIMEOUT in result.marks
                return cls.TIMEOUT if late else cls.FAILED
            case _:
                return cls.ERROR


class RunnerTask(BaseModel):
    id: int
    name: str
    description: str | None
    original_filename: str
    model: str
    agent: str
    harness: str
    num_runs: int
    status: TaskStatus
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    total_runs: int
    passed_runs: int
    failed_runs: int
    """Runs that ended without passing, as in the original: its clients wait until ``passed_runs + failed_runs`` is
    ``total_runs``. Those of them that have no grade are counted in ``error_runs`` too."""
    error_runs: int
    """Not in the original API: how many of ``failed_runs`` are infrastructure errors or cancelled. They are no failures
    of the agent; ``statistics`` and the native API keep them apart."""

    @classmethod
    def of(cls, line: JobLine, rows: list[TrialRow] | None = None) -> RunnerTask:
        """``rows``: the runs to count, if they are not the job's planned trials."""
        return cls(**_task_fields(line, line.counts if rows is None else counts_of(rows)))


class RunItem(BaseModel):
    id: int
    task_id: int
    run_number: int
    status: RunStatus
    started_at: datetime | None
    completed_at: datetime | None
    tests_total: int
    tests_passed: int
    tests_failed: int
    logs: str | None
    """Only in answers about a single run."""
    error_message: str | None
    duration_seconds: float | None

    @classmethod
    def of(cls, row: TrialRow, logs: str | None = None) -> RunItem:
        trial, result = row.trial, row.result if row.trial.state is TrialState.ENDED else None
        passed, failed, total = tests_of(result)
        return cls(
            id=trial.id,
            task_id=trial.job_id,
            run_number=trial.attempt,
            status=RunStatus.of(trial, result),
            started_at=trial.started_at,
            completed_at=trial.ended_at,
            tests_total=total,
            tests_passed=passed,
            tests_failed=failed,
            logs=logs,
            error_message=error_of(trial, result),
            duration_seconds=duration_of(trial, result),
        )


class Statistics(BaseModel):
    total: int
    pending: int
    running: int
    passed: int
    failed: int
    error: int
    pass_rate: float | None = Field(description="Share of the graded runs that passed; null if none was graded.")


class TaskDetail(RunnerTask):
    runs: list[RunItem]
    statistics: Statistics

    @classmethod
    def with_runs(cls, line: JobLine, rows: list[TrialRow]) -> TaskDetail:
        counts = counts_of(rows)
        graded = counts.passed + counts.failed
        statistics = Statistics(
            total=counts.total,
            pending=counts.held + counts.queued,
            running=counts.running,
            passed=counts.passed,
            failed=counts.failed,
            error=counts.error + counts.cancelled,
            pass_rate=counts.passed / graded if graded else None,
        )
        return cls(**_task_fields(line, counts), runs=[RunItem.of(row) for row in rows], statistics=statistics)


class RunResult(BaseModel):
    """The result of a run that the caller waited for."""

    run_id: int
    task_id: int
    status: RunStatus
    success: bool
    reward: float | None
    tests_total: int
    tests_passed: int
    tests_failed: int
    duration_seconds: float | None
    error: str | None

    @classmethod
    def of(cls, row: TrialRow) -> RunResult:
        run = RunItem.of(row)
        return cls(
            **run.model_dump(include=cls.model_fields.keys() & RunItem.model_fields.keys()),
            run_id=run.id,
            success=run.status is RunStatus.PASSED,
            reward=row.result.reward if row.result is not None else None,
            error=run.error_message,
        )


def tests_of(result: Result | None) -> tuple[int, int, int]:
    """Passed, failed, total."""
    tests = result.tests if result is not None else ()
    passed = sum(test.status is TestStatus.PASSED for test in tests)
    failed = sum(test.status in (TestStatus.FAILED, TestStatus.ERROR) for test in tests)
    return passed, failed, len(tests)


def error_of(trial: Trial, result: Result | None) -> str | None:
    if trial.outcome is Outcome.CANCELLED:
        return "The run was cancelled."
    return (result.message or None) if result is not None else None


def duration_of(trial: Trial, result: Result | None) -> float | None:
    """A stopped run has no measurement, so this is the time from its claim to its end. Never 0: the page shows 0 for
    a run that never started."""
    if result is not None and result.seconds:
        return result.seconds
    if trial.state is not TrialState.ENDED or trial.started_at is None or trial.ended_at is None:
        return None
    return (trial.ended_at - trial.started_at).total_seconds() or None


def counts_of(rows: list[TrialRow]) -> StateCounts:
    return StateCounts(**Counter(str(row.trial.outcome or row.trial.state) for row in rows))


def _task_fields(line: JobLine, counts: StateCounts) -> dict[str, Any]:
    job, labels = line.job, line.job.spec.labels
    return {
        "id": job.id,
        "name": job.spec.name,
        "description": labels.get(DESCRIPTION) or None,
        "original_filename": labels.get(FILENAME, ""),
        "model": labels.get(MODEL, ""),
        "agent": labels.get(AGENT, ""),
        "harness": labels.get(HARNESS, ""),
        "num_runs": job.spec.attempts,
        "status": TaskStatus.of(line.counts),
        "created_at": job.created_at,
        "started_at": line.totals.started_at,
        "completed_at": job.ended_at,
        "total_runs": counts.total,
        "passed_runs": counts.passed,
        "failed_runs": counts.failed + counts.error + counts.cancelled,
        "error_runs": counts.error + counts.cancelled,
    }
