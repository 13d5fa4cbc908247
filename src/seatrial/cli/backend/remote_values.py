"""Converts API models to domain values for printing."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.domain.job import Job, JobCounts
from seatrial.domain.result import Attempt, Result
from seatrial.domain.task import TaskProblem
from seatrial.domain.trial import Trial
from seatrial.ports.store import TrialRow
from seatrial.ports.tasks import Inspection
from seatrial.shapes.jobs import JobDetail
from seatrial.shapes.tasks import CheckedArchive
from seatrial.shapes.trials import AttemptItem, TrialCounts, TrialDetail, TrialResult


def counts_of(found: TrialCounts) -> JobCounts:
    return JobCounts(**found.model_dump(exclude={"total"}))


def job_of(found: JobDetail) -> Job:
    return Job(
        id=found.id,
        spec=found.spec,
        created_at=found.created_at,
        cancelled_at=found.cancelled_at,
        ended_at=found.ended_at,
    )


def row_of(found: TrialDetail | TrialResult) -> TrialRow:
    told = {name: getattr(found, name) for name in Trial.model_fields if name in TrialResult.model_fields}
    return TrialRow(trial=Trial(**told), result=found.result)


def attempts_of(found: TrialDetail) -> list[Attempt]:
    """The last ended try has its full result; for earlier ones the service gives only the outcome."""
    ended = [attempt.number for attempt in found.attempts if attempt.outcome is not None]
    return [
        Attempt(
            trial_id=found.id,
            number=attempt.number,
            worker=attempt.worker,
            started_at=attempt.started_at,
            ended_at=attempt.ended_at,
            result=found.result if ended and attempt.number == ended[-1] else _result(attempt),
        )
        for attempt in found.attempts
    ]


def inspections_of(checked: Sequence[CheckedArchive]) -> list[Inspection]:
    found: list[Inspection] = []
    for archive in checked:
        found += [
            Inspection(name=each.name, task=each.task, problems=tuple(each.problems)) for each in archive.inspections
        ]
        if archive.error is not None:
            problem = TaskProblem(file=archive.filename, message=archive.error.message, fix=archive.error.fix)
            found.append(Inspection(name=archive.filename, task=None, problems=(problem,)))
    return found


def _result(attempt: AttemptItem) -> Result | None:
    if attempt.outcome is None:
        return None
    return Result(outcome=attempt.outcome, cause=attempt.cause, message=attempt.message, seconds=attempt.seconds or 0.0)
