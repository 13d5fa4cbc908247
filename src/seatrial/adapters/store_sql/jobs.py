"""Jobs: created with all of their trials, counted from them, cancelled and retried through them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import batched
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.change import change_all, end_job_if_done
from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.events import append_events
from seatrial.adapters.store_sql.rows import job_of, trial_of
from seatrial.adapters.store_sql.tables import IS_ENDED, IS_QUEUED, IS_RUNNING, jobs, trials
from seatrial.domain import chronicle
from seatrial.domain.event import NewEvent
from seatrial.domain.job import Job, JobCounts, JobSpec
from seatrial.domain.trial import CancelAsked, NewTrial, Retried, Trial, TrialState
from seatrial.errors import Conflict, NotFound
from seatrial.ports.store import Page

_IDS_AT_ONCE = 5000
"""Both databases take about 32,000 parameters in one statement."""


class SqlJobs:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create_job(self, spec: JobSpec, trials: Sequence[NewTrial], now: datetime) -> Job:
        return await self._database.write(lambda connection: _create(connection, spec, trials, now))

    async def job(self, job_id: int) -> Job:
        query = sa.select(jobs).where(jobs.c.id == job_id)
        row = await self._database.read(lambda connection: connection.execute(query).first())
        if row is None:
            raise _unknown(job_id)
        return job_of(row)

    async def jobs(self, page: Page) -> list[Job]:
        query = sa.select(jobs).order_by(jobs.c.id.desc()).limit(page.limit)
        if page.before is not None:
            query = query.where(jobs.c.id < page.before)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return [job_of(row) for row in rows]

    async def counts(self, job_ids: Sequence[int]) -> dict[int, JobCounts]:
        tally: dict[int, dict[str, int]] = {job_id: {} for job_id in job_ids}
        for ids in batched(tally, _IDS_AT_ONCE):
            for row in await self._database.read(partial(_count, job_ids=ids)):
                tally[row.job_id][row.outcome if row.state == TrialState.ENDED else row.state] = row.trials
        return {job_id: JobCounts(**found) for job_id, found in tally.items()}

    async def cancel_job(self, job_id: int, now: datetime) -> int:
        return await self._database.write(lambda connection: _cancel(connection, job_id, now))

    async def retry_trials(self, trial_ids: Sequence[int], now: datetime) -> int:
        return await self._database.write(lambda connection: _retry(connection, sorted(set(trial_ids)), now))

    async def delete_job(self, job_id: int) -> None:
        await self._database.write(lambda connection: _delete(connection, job_id))


def _create(connection: Connection, spec: JobSpec, planned: Sequence[NewTrial], now: datetime) -> Job:
    values = {"spec": spec.model_dump_json(), "concurrency": spec.concurrency, "created_at": now}
    job_id = connection.execute(sa.insert(jobs).values(values).returning(jobs.c.id)).scalar_one()
    if planned:
        connection.execute(sa.insert(trials), [_new_trial(job_id, trial, now) for trial in planned])
    facts = [chronicle.job_created(Job(id=job_id, spec=spec, created_at=now), len(planned))]
    if not planned:
        facts += end_job_if_done(connection, job_id, now)
    append_events(connection, facts, now)
    return Job(id=job_id, spec=spec, created_at=now, ended_at=None if planned else now)


def _count(connection: Connection, job_ids: Sequence[int]) -> Sequence[sa.Row[Any]]:
    query = (
        sa.select(trials.c.job_id, trials.c.state, trials.c.outcome, sa.func.count().label("trials"))
        .where(trials.c.job_id.in_(job_ids))
        .group_by(trials.c.job_id, trials.c.state, trials.c.outcome)
    )
    return connection.execute(query).all()


def _new_trial(job_id: int, trial: NewTrial, now: datetime) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "task_name": trial.task.name,
        "task_digest": trial.task.digest,
        "agent_index": trial.agent_index,
        "agent": trial.agent,
        "model": trial.model,
        "repeat": trial.repeat,
        "state": TrialState.QUEUED.value,
        "attempt": 0,
        "attempts_base": 0,
        "cancel_requested": False,
        "created_at": now,
    }


def _cancel(connection: Connection, job_id: int, now: datetime) -> int:
    _lock_jobs(connection, [job_id])
    unfinished = sa.and_(trials.c.job_id == job_id, sa.or_(IS_QUEUED, IS_RUNNING))
    asked = [trial for trial in _lock_trials(connection, unfinished) if not trial.cancel_requested]
    if not asked:
        return 0
    after = change_all(connection, asked, CancelAsked(), now)
    connection.execute(
        sa.update(jobs).where(jobs.c.id == job_id, jobs.c.cancelled_at.is_(None)).values(cancelled_at=now)
    )
    facts = [chronicle.job_cancelled(job_id, len(asked))]
    facts += [chronicle.attempt_closed(trial, None) for trial in after if trial.state is TrialState.ENDED]
    append_events(connection, facts + end_job_if_done(connection, job_id, now), now)
    return len(asked)


def _retry(connection: Connection, trial_ids: list[int], now: datetime) -> int:
    facts: list[NewEvent] = []
    for ids in batched(trial_ids, _IDS_AT_ONCE):
        rows = connection.execute(sa.select(trials.c.id, trials.c.job_id).where(trials.c.id.in_(ids))).all()
        if missing := set(ids) - {row.id for row in rows}:
            raise NotFound(f"There is no trial {min(missing)}.")
        job_ids = sorted({row.job_id for row in rows})
        _lock_jobs(connection, job_ids)
        ended = _lock_trials(connection, sa.and_(trials.c.id.in_(ids), IS_ENDED))
        facts += [chronicle.trial_retried(trial) for trial in change_all(connection, ended, Retried(), now)]
        reopened = {trial.job_id for trial in ended}
        connection.execute(sa.update(jobs).where(jobs.c.id.in_(reopened)).values(cancelled_at=None, ended_at=None))
    append_events(connection, facts, now)
    return len(facts)


def _delete(connection: Connection, job_id: int) -> None:
    _lock_jobs(connection, [job_id])
    gone = connection.execute(sa.delete(jobs).where(jobs.c.id == job_id, jobs.c.ended_at.is_not(None))).rowcount
    if not gone:
        raise Conflict(f"Job {job_id} has trials left to do.", fix=f"Cancel it first: seatrial job cancel {job_id}")


def _lock_jobs(connection: Connection, job_ids: list[int]) -> None:
    query = sa.select(jobs.c.id).where(jobs.c.id.in_(job_ids)).order_by(jobs.c.id).with_for_update(key_share=True)
    found = set(connection.execute(query).scalars())
    if missing := set(job_ids) - found:
        raise _unknown(min(missing))


def _lock_trials(connection: Connection, which: sa.ColumnElement[bool]) -> list[Trial]:
    query = sa.select(trials).where(which).order_by(trials.c.id).with_for_update(key_share=True)
    return [trial_of(row) for row in connection.execute(query).mappings()]


def _unknown(job_id: int) -> NotFound:
    return NotFound(f"There is no job {job_id}.")
