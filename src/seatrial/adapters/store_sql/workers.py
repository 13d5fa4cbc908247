"""Who is there to work."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.tables import workers
from seatrial.ports.store import Heartbeat, WorkerRow

_all = sa.select(workers).order_by(workers.c.name)
_seen_since = _all.where(workers.c.seen_at >= sa.bindparam("since"))


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

    async def workers(self, seen_since: datetime | None = None) -> list[WorkerRow]:
        query = _all if seen_since is None else _seen_since
        rows = await self._database.rows(query, {"since": seen_since})
        beats = [(Heartbeat.model_validate_json(row["document"]), row["seen_at"]) for row in rows]
        return [WorkerRow(seen_at=seen_at, **dict(heartbeat)) for heartbeat, seen_at in beats]

    async def forget_worker(self, worker: str) -> None:
        await self._database.change(sa.delete(workers).where(workers.c.name == worker), durable=False)
