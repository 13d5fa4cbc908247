"""Finds the job and trial that a TBench Runner call names, and answers errors in that API's format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from fastapi import HTTPException
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from seatrial.api.compat.tbench_shapes import ORIGIN, RunnerTask
from seatrial.api.context import Service
from seatrial.domain.job import Job
from seatrial.engine.reports.listing import JobLine
from seatrial.errors import InvalidInput, NotFound
from seatrial.ports.store import TrialFilter, TrialRow


async def job_of(service: Service, task_id: int) -> Job:
    """Jobs created through another API are not found here."""
    with suppress(NotFound):
        job = await service.installation.store.jobs.get(task_id)
        if job.spec.origin == ORIGIN:
            return job
    raise HTTPException(404, "Task not found")


async def rows_of(service: Service, job: Job) -> list[TrialRow]:
    """The runs of a task. After a retry these are the last attempts, under the numbers of the runs that they repeat."""
    numbers: dict[int, int] = {}
    latest: dict[int, TrialRow] = {}
    async for row in service.installation.store.trials.each(TrialFilter(job_id=job.id)):
        first = row.trial.reruns or row.trial.id
        latest[first] = _numbered(row, numbers.setdefault(first, row.trial.attempt))
    return list(latest.values())


async def task_of(service: Service, line: JobLine) -> RunnerTask:
    """Of a retried task, the counts are those of its last runs."""
    rows = await rows_of(service, line.job) if line.counts.added.total else None
    return RunnerTask.of(line, rows)


async def run_of(service: Service, task_id: int, run_id: int) -> TrialRow:
    await job_of(service, task_id)
    with suppress(NotFound):
        row = await service.installation.store.trials.get(run_id)
        if row.trial.job_id == task_id:
            return await _renumbered(service, row)
    raise HTTPException(404, "Run not found")


async def _renumbered(service: Service, row: TrialRow) -> TrialRow:
    if row.trial.reruns is None:
        return row
    return _numbered(row, (await service.installation.store.trials.get(row.trial.reruns)).trial.attempt)


def _numbered(row: TrialRow, number: int) -> TrialRow:
    return row.model_copy(update={"trial": row.trial.model_copy(update={"attempt": number})})


def validated[T: BaseModel](kind: type[T], fields: dict[str, Any]) -> T:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        found = [{**fault, "loc": ("query", *fault["loc"])} for fault in error.errors()]
        raise RequestValidationError(found) from error


@contextmanager
def as_400() -> Iterator[None]:
    """This API answers 400 for every error that the caller can fix."""
    try:
        yield
    except InvalidInput as error:
        raise HTTPException(400, str(error)) from error
