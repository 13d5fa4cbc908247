"""Workers: their heartbeats, who may leave, and who does a duty for all."""

from __future__ import annotations

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.tables import IS_RUNNING, duty_leases, trials, workers
from seatrial.adapters.store_sql.tasks import insert_into
from seatrial.domain.fleet.worker_death import Death
from seatrial.ports.store import Heartbeat, WorkerRow

_HEARTBEAT = (workers.c.document, workers.c.seen_at)
_all_workers = sa.select(*_HEARTBEAT).order_by(workers.c.name)
_document = sa.select(workers.c.document).where(workers.c.name == sa.bindparam("name"))
_tell = sa.update(workers).where(workers.c.name == sa.bindparam("which"))
_workers_since = _all_workers.where(workers.c.seen_at >= sa.bindparam("since"))
# Locks the workers, so that of two that ask at the same time the second one sees the decision about the first.
_staying = (
    sa.select(workers.c.name, workers.c.document)
    .where(workers.c.seen_at >= sa.bindparam("since"), workers.c.leaving_at.is_(None))
    .order_by(workers.c.name)
    .with_for_update()
)
_holds_a_trial = sa.select(sa.exists().where(IS_RUNNING, trials.c.worker == sa.bindparam("worker", type_=sa.Text)))


class SqlWorkers:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def beat(self, heartbeat: Heartbeat, now: datetime) -> None:
        values = {"document": heartbeat.model_dump_json(), "seen_at": now}

        def operation(connection: Connection) -> None:
            known = sa.update(workers).where(workers.c.name == heartbeat.worker).values(values)
            if connection.execute(known).rowcount == 0:
                connection.execute(sa.insert(workers).values(name=heartbeat.worker, **values))

        await self._database.write(operation, durable=False)

    async def all(self, seen_since: datetime | None = None) -> list[WorkerRow]:
        query = _all_workers if seen_since is None else _workers_since
        rows = await self._database.rows(query, {"since": seen_since})
        beats = [(Heartbeat.model_validate_json(row["document"]), row["seen_at"]) for row in rows]
        return [WorkerRow(seen_at=seen_at, **dict(heartbeat)) for heartbeat, seen_at in beats]

    async def died(self, worker: str, death: Death) -> None:
        def operation(connection: Connection) -> None:
            document = connection.execute(_document, {"name": worker}).scalar()
            if document is not None:
                told = Heartbeat.model_validate_json(document).model_copy(update={"death": death})
                connection.execute(_tell, {"which": worker, "document": told.model_dump_json()})

        await self._database.write(operation, durable=False)

    async def forget(self, worker: str) -> None:
        await self._database.change(sa.delete(workers).where(workers.c.name == worker), durable=False)

    async def leave_if_spare(self, worker: str, minimum: int, seen_since: datetime, now: datetime) -> bool:
        def operation(connection: Connection) -> bool:
            rows = connection.execute(_staying, {"since": seen_since}).all()
            others = [row for row in rows if row.name != worker and Heartbeat.model_validate_json(row.document).works]
            if len(others) < minimum or connection.execute(_holds_a_trial, {"worker": worker}).scalar():
                return False
            leaving = sa.update(workers).where(workers.c.name == worker, workers.c.leaving_at.is_(None))
            return connection.execute(leaving.values(leaving_at=now)).rowcount == 1

        return await self._database.write(operation)


class SqlDuties:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, duty: str, holder: str, lease: timedelta, now: datetime) -> bool:
        """One statement: PostgreSQL locks the row of the duty, so two holders cannot both replace an expired lease."""
        values = {"holder": holder, "until": now + lease}
        free = sa.or_(duty_leases.c.holder == holder, duty_leases.c.until <= now)

        def operation(connection: Connection) -> bool:
            insert = insert_into(connection, duty_leases).values(duty=duty, **values)
            taken = insert.on_conflict_do_update(index_elements=[duty_leases.c.duty], set_=values, where=free)
            return bool(connection.execute(taken).rowcount == 1)

        return await self._database.write(operation, durable=False)
