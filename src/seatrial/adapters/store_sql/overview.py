"""Numbers about the whole installation, counted from the trials."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.job_filter import narrow_jobs
from seatrial.adapters.store_sql.tables import IS_ENDED, IS_HELD, IS_QUEUED, IS_RUNNING, jobs, trials
from seatrial.domain.job import JobCounts, JobStatus
from seatrial.domain.trial import Cause, Outcome, TrialState
from seatrial.ports.store import Backlog, Experience, JobFilter, Overview

_RUNNING = sa.and_(IS_RUNNING, trials.c.id > sa.literal_column("0"))
_QUEUED = sa.and_(IS_QUEUED, trials.c.job_id > sa.literal_column("0"))
"""The comparison makes SQLite use the partial index of the state instead of scanning a larger one."""


def _counted(*which: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    """A count as a scalar subquery that does not correlate with the statement around it."""
    there = sa.select(sa.func.count()).where(*which)
    return there.correlate(None).scalar_subquery()


_backlog = sa.select(
    sa.func.count().label("queued"),
    sa.func.count(sa.case((trials.c.not_before > sa.bindparam("now"), 1))).label("delayed"),
    sa.func.min(trials.c.created_at, type_=trials.c.created_at.type).label("oldest_queued_at"),
    _counted(_RUNNING).label("running"),
    _counted(IS_ENDED, trials.c.ended_at > sa.bindparam("since")).label("ended_last_minute"),
).where(IS_QUEUED)


class SqlOverview:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def overview(self, origin: str | None = None) -> Overview:
        return await self._database.read(lambda connection: _overview(connection, origin))

    async def backlog(self, now: datetime) -> Backlog:
        given = {"now": now, "since": now - timedelta(minutes=1)}
        (row,) = await self._database.rows(_backlog, given)
        return Backlog(**row)

    async def experience(self, tasks: Sequence[str]) -> list[Experience]:
        query = (
            sa.select(
                trials.c.task_name.label("task"),
                trials.c.agent,
                trials.c.model,
                sa.func.count().label("trials"),
                sa.func.avg(trials.c.seconds).label("seconds"),
                sa.func.avg(trials.c.cost_usd).label("cost_usd"),
            )
            .where(trials.c.task_name.in_(tasks), IS_ENDED, trials.c.seconds.is_not(None))
            .where(trials.c.outcome.in_([Outcome.PASSED.value, Outcome.FAILED.value]))
            .group_by(trials.c.task_name, trials.c.agent, trials.c.model)
        )
        return [Experience(**row) for row in await self._database.rows(query)]


def _overview(connection: Connection, origin: str | None) -> Overview:
    everything = origin is None
    of_origin = trials.c.job_id.in_(sa.select(jobs.c.id).where(jobs.c.origin == origin))
    tally = _tally(connection, None if everything else of_origin)
    causes = connection.execute(
        sa.select(trials.c.cause, sa.func.count().label("trials"))
        .where(IS_ENDED, trials.c.outcome == Outcome.ERROR.value, trials.c.cause.is_not(None))
        .where(sa.true() if everything else of_origin)
        .group_by(trials.c.cause)
    )
    chosen = (JobFilter(status=status, origin=origin) for status in JobStatus)
    counted = ((each.status, narrow_jobs(sa.select(sa.func.count()).select_from(jobs), each)) for each in chosen)
    by_status = {status: connection.execute(query).scalar_one() for status, query in counted if status}
    errors = {Cause(row.cause): row.trials for row in causes}
    return Overview(jobs=by_status, trials=JobCounts(**tally), errors=errors)


def _tally(connection: Connection, of_origin: sa.ColumnElement[bool] | None) -> dict[str, int]:
    """Trials by state and, once ended, by outcome. State by state: each has an index that holds no other, while one
    query for all of them would sort every trial there is."""
    among = sa.true() if of_origin is None else of_origin
    is_open = trials.c.job_id.in_(sa.select(jobs.c.id).where(jobs.c.ended_at.is_(None)))
    states = {TrialState.HELD: sa.and_(IS_HELD, is_open), TrialState.QUEUED: _QUEUED, TrialState.RUNNING: _RUNNING}
    tally = {
        state.value: connection.execute(sa.select(sa.func.count()).where(which, among)).scalar_one()
        for state, which in states.items()
    }
    ended = sa.select(trials.c.outcome, sa.func.count().label("trials")).where(IS_ENDED, among)
    return tally | {row.outcome: row.trials for row in connection.execute(ended.group_by(trials.c.outcome))}
