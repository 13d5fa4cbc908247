"""Live output: each running trial has a ring buffer of limited size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.tables import IS_RUNNING, output, trials
from seatrial.domain.output import RING_PIECES, NewOutput, Output

_WRITING = 0x5EA7_0003
"""Advisory lock in PostgreSQL. Numbers are assigned before the commit; without the lock, readers could see a later
number first."""

_ids: sa.BindParameter[Sequence[int]] = sa.bindparam("ids", expanding=True)
_trial: sa.BindParameter[int] = sa.bindparam("trial", type_=sa.BigInteger)
_running = sa.select(trials.c.id, trials.c.attempt).where(trials.c.id.in_(_ids), IS_RUNNING)
_there = (
    sa.select(output.c.trial_id, sa.func.count().label("pieces"))
    .where(output.c.trial_id.in_(_ids))
    .group_by(output.c.trial_id)
)
_lock_tail = sa.select(sa.func.pg_advisory_xact_lock(_WRITING))
_insert = sa.insert(output)
_oldest_kept = (
    sa.select(output.c.seq)
    .where(output.c.trial_id == _trial)
    .order_by(output.c.seq.desc())
    .offset(RING_PIECES - 1)
    .limit(1)
    .scalar_subquery()
)
_trim = sa.delete(output).where(output.c.trial_id == _trial, output.c.seq < _oldest_kept)


class SqlOutput:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._sizes: dict[int, int] = {}
        """Pieces per trial, because only a full ring needs trimming. Two concurrent writes may count too few; the next
        trim corrects that."""

    async def append(self, pieces: Sequence[NewOutput], now: datetime) -> None:
        if pieces:
            known = dict(self._sizes)
            sizes = await self._database.write(lambda there: _append(there, pieces, known, now), durable=False)
            self._sizes.update(sizes)

    async def read(self, trial_ids: Sequence[int], after: int = 0, limit: int = 500) -> list[Output]:
        if not trial_ids:
            return []
        query = (
            sa.select(output)
            .where(output.c.trial_id.in_(trial_ids), output.c.seq > after)
            .order_by(output.c.seq)
            .limit(limit)
        )
        return [Output(**row) for row in await self._database.rows(query)]

    async def drop(self, trial_ids: Sequence[int]) -> None:
        if trial_ids:
            gone = sa.delete(output).where(output.c.trial_id.in_(trial_ids))
            await self._database.change(gone, durable=False)
            for trial_id in trial_ids:
                self._sizes.pop(trial_id, None)


def _append(
    connection: Connection, pieces: Sequence[NewOutput], known: Mapping[int, int], now: datetime
) -> dict[int, int]:
    """Appends the pieces of current tries. Returns the number of pieces of each of these trials."""
    ids = {piece.trial_id for piece in pieces}
    current = {row.id: row.attempt for row in connection.execute(_running, {"ids": sorted(ids)})}
    fresh = [piece for piece in pieces if current.get(piece.trial_id) == piece.attempt]
    if not fresh:
        return {}
    added = Counter(piece.trial_id for piece in fresh)
    sizes = _sizes(connection, added.keys(), known)
    if connection.dialect.name == "postgresql":
        connection.execute(_lock_tail)
    connection.execute(_insert, [{**piece.model_dump(mode="json"), "at": now} for piece in fresh])
    sizes.update(added)
    for trial_id in sorted(added):
        if sizes[trial_id] > RING_PIECES:
            connection.execute(_trim, {"trial": trial_id})
            sizes[trial_id] = RING_PIECES
    return sizes


def _sizes(connection: Connection, trial_ids: Set[int], known: Mapping[int, int]) -> Counter[int]:
    unknown = sorted(trial_ids - known.keys())
    counted = connection.execute(_there, {"ids": unknown}).all() if unknown else []
    sizes = Counter({trial_id: known[trial_id] for trial_id in trial_ids if trial_id in known})
    sizes.update({row.trial_id: row.pieces for row in counted})
    return sizes
