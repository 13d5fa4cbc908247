"""The pace of providers: one row of what is known for each, and one for each worker that calls it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.tables import pace_shares, paces
from seatrial.domain.model_calls import provider_pace
from seatrial.domain.model_calls.provider_pace import PaceGrant, PaceReport, PaceState, WorkerShare

_name: sa.BindParameter[str] = sa.bindparam("pace", type_=sa.Text)
_state = sa.select(paces.c.state).where(paces.c.name == _name).with_for_update()
_shares = sa.select(pace_shares).where(pace_shares.c.name == _name)
_expired = sa.delete(pace_shares).where(
    pace_shares.c.name == _name, pace_shares.c.expires_at <= sa.bindparam("now", type_=pace_shares.c.expires_at.type)
)
_outdated = sa.delete(paces).where(paces.c.changed_at < sa.bindparam("before", type_=paces.c.changed_at.type))
_KEPT = timedelta(days=1)
"""A job with a key of its own has a pace of its own, so old ones are removed when a new one begins."""


class SqlPace:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def exchange(
        self, worker: str, reports: Mapping[str, PaceReport], lease: timedelta, now: datetime
    ) -> dict[str, PaceGrant]:
        def operation(connection: Connection) -> dict[str, PaceGrant]:
            # Sorted, so that two workers lock the rows in the same order.
            return {name: _exchange(connection, worker, name, reports[name], lease, now) for name in sorted(reports)}

        return await self._database.write(operation, durable=False) if reports else {}

    async def leave(self, worker: str) -> None:
        await self._database.change(sa.delete(pace_shares).where(pace_shares.c.worker == worker), durable=False)


def _exchange(
    connection: Connection, worker: str, name: str, report: PaceReport, lease: timedelta, now: datetime
) -> PaceGrant:
    if _insert(connection, paces, {"name": name, "state": PaceState().model_dump_json(), "changed_at": now}):
        connection.execute(_outdated, {"before": now - _KEPT})
    before = PaceState.model_validate_json(connection.execute(_state, {"pace": name}).scalar_one())
    connection.execute(_expired, {"pace": name, "now": now})
    shares = [_share(row) for row in connection.execute(_shares, {"pace": name}).mappings()]
    mine = next((share for share in shares if share.worker == worker), None) or WorkerShare(
        worker=worker, served_at=now
    )
    others = [share for share in shares if share.worker != worker]
    after, mine, grant = provider_pace.exchange(before, mine, others, report, now)
    if after != before:
        kept = {"state": after.model_dump_json(), "changed_at": now}
        connection.execute(sa.update(paces).where(paces.c.name == name).values(kept))
    values = {**mine.model_dump(exclude={"worker"}), "expires_at": now + lease}
    this = sa.and_(pace_shares.c.name == name, pace_shares.c.worker == worker)
    if connection.execute(sa.update(pace_shares).where(this).values(values)).rowcount == 0:
        _insert(connection, pace_shares, {"name": name, "worker": worker, **values})
    return grant


def _insert(connection: Connection, table: sa.Table, values: dict[str, object]) -> bool:
    """False if it is there already."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return connection.execute(dialect.insert(table).values(values).on_conflict_do_nothing()).rowcount > 0


def _share(row: sa.RowMapping) -> WorkerShare:
    return WorkerShare.model_validate({name: row[name] for name in WorkerShare.model_fields})
