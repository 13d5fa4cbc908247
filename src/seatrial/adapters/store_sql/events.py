"""The event log, in the order of the commits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.tables import events
from seatrial.domain.event import Event, NewEvent
from seatrial.errors import NotFound

_APPENDING = 0x5EA7_0001
"""Advisory lock in PostgreSQL for appending to the log."""

_lock_tail = sa.select(sa.func.pg_advisory_xact_lock(_APPENDING))
_insert = sa.insert(events)


def append_events(connection: Connection, facts: Sequence[NewEvent], at: datetime | Sequence[datetime]) -> None:
    """Appends events. Every operation calls this as the last step of its transaction.

    Numbers are assigned before the commit. If two transactions overlap, 5 could be visible before 4, and a reader that
    continues after 5 would never see 4. SQLite has one writer. On PostgreSQL this takes a lock until the commit. It is
    the last lock of the transaction, so that no holder of it waits for another lock."""
    if not facts:
        return
    if connection.dialect.name == "postgresql":
        connection.execute(_lock_tail)
    moments = [at] * len(facts) if isinstance(at, datetime) else at
    rows = [
        {**fact.__dict__, "kind": fact.kind.value, "at": moment, "data": json.dumps(fact.data)}
        for fact, moment in zip(facts, moments, strict=True)
    ]
    connection.execute(_insert, rows)


class SqlEvents:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, events: Sequence[NewEvent], now: datetime) -> None:
        def operation(connection: Connection) -> None:
            try:
                append_events(connection, events, now)
            except sa.exc.IntegrityError as fault:
                raise NotFound("The event belongs to a job that does not exist.") from fault

        await self._database.write(operation, durable=False)

    async def last(self) -> int:
        query = sa.select(sa.func.coalesce(sa.func.max(events.c.seq), 0))
        return int(await self._database.value(query))

    async def read(
        self, after: int = 0, job_id: int | None = None, trial_id: int | None = None, limit: int = 500
    ) -> list[Event]:
        query = sa.select(events).where(events.c.seq > after).order_by(events.c.seq).limit(limit)
        if job_id is not None:
            query = query.where(events.c.job_id == job_id)
        if trial_id is not None:
            query = query.where(events.c.trial_id == trial_id)
        return [Event(**{**row, "data": json.loads(row["data"])}) for row in await self._database.rows(query)]
