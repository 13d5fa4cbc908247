"""Converts API models to domain values for printing."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.domain.job import Job, JobCounts, StateCounts
from seatrial.domain.result import Result, Try
from seatrial.domain.task import TaskProblem
from seatrial.domain.trial import Trial
from seatrial.ports.store import TrialRow
from seatrial.ports.tasks import Inspection
from seatrial.shapes.jobs import JobDetail, JobItem
from seatrial.shapes.tasks import CheckedArchive
from seatrial.shapes.trials import AttemptItem, TrialDetail, TrialResult


def counts_of(found: JobItem) -> JobCounts:
    added = StateCounts(**found.added.model_dump(exclude={"total"})) if found.added else StateCounts()
    return JobCounts(**found.counts.model_dump(exclude={"total"}), added=added)


def job_of(found: JobDetail) -> Job:
    return Job(
        id=found.id,
        spec=found.spec,
        created_at=found.created_at,
        cancelled_at=found.cancelled_at,
        ended_at=found.ended_at,
        renamed=found.name,
    )


def row_of(found: TrialDetail | TrialResult) -> TrialRow:
    told = {name: getattr(found, name) for name in Trial.model_fields if name in TrialResult.model_fields}
    told |= {"attempt": found.repeat, "try_number": found.attempt}  # the API keeps the names it began with
    return TrialRow(trial=Trial(**told), result=found.result)


def tries_of(found: TrialDetail) -> list[Try]:
    """The last ended try has its full result; for earlier ones the service gives only the outcome."""
    ended = [a_try.number for a_try in found.attempts if a_try.outcome is not None]
    return [
        Try(
            trial_id=found.id,
            number=a_try.number,
            worker=a_try.worker,
            started_at=a_try.started_at,
            ended_at=a_try.ended_at,
            result=found.result if ended and a_try.number == ended[-1] else _result(a_try),
        )
        for a_try in found.attempts
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


def _result(a_try: AttemptItem) -> Result | None:
    if a_try.outcome is None:
        return None
    return Result(outcome=a_try.outcome, cause=a_try.cause, message=a_try.message, seconds=a_try.seconds or 0.0)
