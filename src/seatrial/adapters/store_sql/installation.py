"""The installation: tokens by their fingerprint, sealed provider keys, and totals counted from the trials."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.job_filter import narrow_jobs
from seatrial.adapters.store_sql.tables import (
    IS_ENDED,
    IS_HELD,
    IS_OPEN,
    IS_QUEUED,
    IS_RUNNING,
    jobs,
    provider_keys,
    tokens,
    trials,
)
from seatrial.domain.fleet.work_units import OpenWork
from seatrial.domain.job import JobCounts, JobStatus
from seatrial.domain.token import NewToken, Token
from seatrial.domain.trial import Cause, Mark, Outcome, TrialState
from seatrial.errors import NotFound
from seatrial.ports.store import Backlog, Experience, JobFilter, Overview, ProviderKey

_RUNNING = sa.and_(IS_RUNNING, trials.c.id > sa.literal_column("0"))
_QUEUED = sa.and_(IS_QUEUED, trials.c.job_id > sa.literal_column("0"))
"""The comparison makes SQLite use the partial index of the state instead of scanning a larger one."""


def _counted(*which: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    """A count as a scalar subquery that does not correlate with the statement around it."""
    there = sa.select(sa.func.count()).where(*which)
    return there.correlate(None).scalar_subquery()


# The smallest id has waited longest. An index knows it, while the oldest ``created_at`` would take every row.
_oldest = sa.select(sa.func.min(trials.c.id)).where(_QUEUED).correlate(None).scalar_subquery()
_backlog = sa.select(
    sa.func.count().label("queued"),
    sa.func.count(sa.case((trials.c.not_before > sa.bindparam("now"), 1))).label("delayed"),
    sa.select(trials.c.created_at)
    .where(trials.c.id == _oldest)
    .correlate(None)
    .scalar_subquery()
    .label("oldest_queued_at"),
    _counted(_RUNNING).label("running"),
    _counted(IS_ENDED, trials.c.ended_at > sa.bindparam("since")).label("ended_last_minute"),
).where(_QUEUED)
_open_work = (
    sa.select(trials.c.job_id, trials.c.task_digest, sa.func.count().label("trials"))
    .where(IS_OPEN, trials.c.job_id > sa.literal_column("0"))
    .group_by(trials.c.job_id, trials.c.task_digest)
)
_limits = sa.select(jobs.c.id, jobs.c.concurrency).where(jobs.c.ended_at.is_(None), jobs.c.concurrency.is_not(None))


class SqlTokens:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, token: NewToken, now: datetime) -> Token:
        insert = sa.insert(tokens).values(created_at=now, **token.model_dump()).returning(*tokens.c)
        row = await self._database.write(lambda connection: connection.execute(insert).mappings().one())
        return Token(**row)

    async def get(self, fingerprint: str) -> Token | None:
        query = sa.select(tokens).where(tokens.c.fingerprint == fingerprint)
        return next((Token(**row) for row in await self._database.rows(query)), None)

    async def all(self) -> list[Token]:
        query = sa.select(tokens).order_by(tokens.c.id.desc())
        return [Token(**row) for row in await self._database.rows(query)]

    async def revoke(self, token_id: int, now: datetime) -> Token:
        revoked = sa.func.coalesce(tokens.c.revoked_at, now, type_=tokens.c.revoked_at.type)
        update = sa.update(tokens).where(tokens.c.id == token_id).values(revoked_at=revoked).returning(*tokens.c)
        row = await self._database.write(lambda connection: connection.execute(update).mappings().first())
        if row is None:
            raise NotFound(f"There is no token {token_id}.")
        return Token(**row)

    async def note_use(self, token_id: int, now: datetime) -> None:
        update = sa.update(tokens).where(tokens.c.id == token_id).values(used_at=now)
        await self._database.change(update, durable=False)


class SqlProviderKeys:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, name: str, sealed: str, now: datetime) -> None:
        values = {"sealed": sealed, "set_at": now}

        def operation(connection: Connection) -> None:
            known = sa.update(provider_keys).where(provider_keys.c.name == name).values(values)
            if connection.execute(known).rowcount == 0:
                connection.execute(sa.insert(provider_keys).values(name=name, **values))

        await self._database.write(operation)

    async def all(self) -> list[ProviderKey]:
        query = sa.select(provider_keys).order_by(provider_keys.c.name)
        return [ProviderKey(**row) for row in await self._database.rows(query)]

    async def delete(self, name: str) -> None:
        gone = sa.delete(provider_keys).where(provider_keys.c.name == name)
        if not await self._database.change(gone):
            raise NotFound(f"There is no provider key {name}.")


class SqlTotals:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def overview(self, origin: str | None = None) -> Overview:
        return await self._database.read(lambda connection: _overview(connection, origin))

    async def backlog(self, now: datetime) -> Backlog:
        given = {"now": now, "since": now - timedelta(minutes=1)}
        (row,) = await self._database.rows(_backlog, given)
        return Backlog(**row)

    async def open_work(self) -> list[OpenWork]:
        limits = {row["id"]: row["concurrency"] for row in await self._database.rows(_limits)}
        return [OpenWork(**row, concurrency=limits.get(row["job_id"])) for row in await self._database.rows(_open_work)]

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
            .where(~sa.func.coalesce(trials.c.marks, "").contains(Mark.REPLAYED.value, autoescape=True))
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
    """Trials by state and, once ended, by outcome. One query per state: each uses the partial index of its state,
    while one query for all would sort every trial."""
    among = sa.true() if of_origin is None else of_origin
    is_open = trials.c.job_id.in_(sa.select(jobs.c.id).where(jobs.c.ended_at.is_(None)))
    states = {TrialState.HELD: sa.and_(IS_HELD, is_open), TrialState.QUEUED: _QUEUED, TrialState.RUNNING: _RUNNING}
    tally = {
        state.value: connection.execute(sa.select(sa.func.count()).where(which, among)).scalar_one()
        for state, which in states.items()
    }
    ended = sa.select(trials.c.outcome, sa.func.count().label("trials")).where(IS_ENDED, among)
    return tally | {row.outcome: row.trials for row in connection.execute(ended.group_by(trials.c.outcome))}
