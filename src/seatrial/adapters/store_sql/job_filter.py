"""The filters of job listings in SQL. A job's status is derived from its trials, as in ``JobCounts.status``."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from seatrial.adapters.store_sql.tables import IS_ENDED, IS_HELD, IS_QUEUED, IS_RUNNING, jobs, trials
from seatrial.domain.job import JobStatus
from seatrial.domain.trial import Outcome
from seatrial.ports.store import JobFilter


def narrow_jobs(query: sa.Select[Any], chosen: JobFilter) -> sa.Select[Any]:
    if chosen.status is not None:
        query = query.where(has_status(chosen.status))
    if chosen.waits is not None:
        query = query.where(jobs.c.ended_at.is_(None), _only_held() if chosen.waits else _waits_or_runs())
    if chosen.settling is not None:
        settles = sa.and_(jobs.c.ended_at.is_(None), jobs.c.spec.like('%"until_settled":{%'))
        query = query.where(settles if chosen.settling else ~settles)
    if chosen.origin is not None:
        query = query.where(jobs.c.origin == chosen.origin)
    if chosen.name is not None:
        query = query.where(sa.func.coalesce(jobs.c.renamed, jobs.c.name).icontains(chosen.name, autoescape=True))
    if chosen.pinned is not None:
        query = query.where(jobs.c.pinned_at.is_not(None) if chosen.pinned else jobs.c.pinned_at.is_(None))
    if chosen.dataset is not None:
        query = query.where(jobs.c.dataset == chosen.dataset)
    for column, value in (
        # Not the bare column: with the index by task, the database would read all trials of the task for each job.
        (trials.c.task_name.concat(""), chosen.task),
        (trials.c.agent, chosen.agent),
        (trials.c.model, chosen.model),
    ):
        if value is not None:
            query = query.where(_has_trial(column == value))
    return query


def has_status(status: JobStatus) -> sa.ColumnElement[bool]:
    is_open = jobs.c.ended_at.is_(None)
    has_begun = sa.or_(_has_trial(IS_RUNNING), _has_trial(IS_ENDED))
    only_cancelled = sa.and_(_has_trial(IS_ENDED), ~_has_trial(trials.c.outcome != Outcome.CANCELLED.value))
    match status:
        case JobStatus.PENDING:
            return sa.and_(is_open, sa.or_(_only_held(), ~has_begun))
        case JobStatus.RUNNING:
            return sa.and_(is_open, has_begun, _waits_or_runs())
        case JobStatus.COMPLETED:
            return sa.and_(~is_open, ~only_cancelled)
        case JobStatus.CANCELLED:
            return sa.and_(~is_open, only_cancelled)


def _waits_or_runs() -> sa.ColumnElement[bool]:
    return sa.or_(_has_trial(IS_QUEUED), _has_trial(IS_RUNNING))


def _only_held() -> sa.ColumnElement[bool]:
    return sa.and_(_has_trial(IS_HELD), ~_waits_or_runs())


def _has_trial(which: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    return sa.exists().where(trials.c.job_id == jobs.c.id, which)
