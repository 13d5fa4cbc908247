"""Live output: a bounded ring for each running trial."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.tables import IS_RUNNING, output, trials
from seatrial.domain.output import RING_PIECES, NewOutput, Output

_WRITING = 0x5EA7_0003
"""PostgreSQL's advisory lock: numbers are given before a commit, and readers must not see a later one first."""


class SqlOutput:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def append_output(self, pieces: Sequence[NewOutput], now: datetime) -> None:
        if pieces:
            await self._database.write(lambda connection: _append(connection, pieces, now), durable=False)

    async def output(self, trial_ids: Sequence[int], after: int = 0, limit: int = 500) -> list[Output]:
        if not trial_ids:
            return []
        query = (
            sa.select(output)
            .where(output.c.trial_id.in_(trial_ids), output.c.seq > after)
            .order_by(output.c.seq)
            .limit(limit)
        )
        rows = await self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [Output(**row) for row in rows]

    async def drop_output(self, trial_ids: Sequence[int]) -> None:
        if trial_ids:
            gone = sa.delete(output).where(output.c.trial_id.in_(trial_ids))
            await self._database.write(lambda connection: connection.execute(gone).rowcount, durable=False)


def _append(connection: Connection, pieces: Sequence[NewOutput], now: datetime) -> None:
    ids = {piece.trial_id for piece in pieces}
    running = connection.execute(sa.select(trials.c.id, trials.c.attempt).where(trials.c.id.in_(ids), IS_RUNNING))
    current = {row.id: row.attempt for row in running}
    fresh = [piece for piece in pieces if current.get(piece.trial_id) == piece.attempt]
    if not fresh:
        return
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_WRITING)))
    connection.execute(sa.insert(output), [{**piece.model_dump(mode="json"), "at": now} for piece in fresh])
    for trial_id in sorted({piece.trial_id for piece in fresh}):
        _trim(connection, trial_id)


def _trim(connection: Connection, trial_id: int) -> None:
    oldest_kept = (
        sa.select(output.c.seq)
        .where(output.c.trial_id == trial_id)
        .order_by(output.c.seq.desc())
        .offset(RING_PIECES - 1)
        .limit(1)
        .scalar_subquery()
    )
    connection.execute(sa.delete(output).where(output.c.trial_id == trial_id, output.c.seq < oldest_kept))
