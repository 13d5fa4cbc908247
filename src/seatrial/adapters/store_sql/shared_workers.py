"""Which trials shared a worker, and what a worker may claim. ``domain/isolation.py`` has the rules."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.rows import trial_of, values_of
from seatrial.adapters.store_sql.tables import IS_RUNNING, IS_SUSPECTED, trials, tries
from seatrial.domain.isolation import MayClaim, may_claim

_worker: sa.BindParameter[str] = sa.bindparam("worker", type_=sa.Text)
_try = sa.select(tries.c.worker, tries.c.started_at).where(
    tries.c.trial_id == sa.bindparam("trial"), tries.c.number == sa.bindparam("number")
)
_running_beside = sa.select(
    sa.exists().where(IS_RUNNING, trials.c.worker == _worker, trials.c.id != sa.bindparam("trial"))
)
_ran_beside = sa.select(
    sa.exists().where(
        tries.c.worker == _worker,
        tries.c.trial_id != sa.bindparam("trial"),
        tries.c.ended_at > sa.bindparam("since", type_=tries.c.started_at.type),
    )
)
_suspects = sa.select(trials).where(
    IS_SUSPECTED,
    sa.or_(trials.c.not_before.is_(None), trials.c.not_before <= sa.bindparam("now", type_=trials.c.not_before.type)),
    sa.or_(
        sa.bindparam("only", type_=sa.BigInteger).is_(None),
        trials.c.job_id == sa.bindparam("only"),
        trials.c.worker == _worker,
    ),
)
_held = sa.select(sa.func.count()).select_from(trials).where(IS_RUNNING, trials.c.worker == _worker)


def was_shared(connection: Connection, trial_id: int, try_number: int) -> bool:
    """Whether the try's worker held other trials at any time during the try.

    The trials of a lost worker are recovered one by one: for the first one the others still run, for the last one their
    tries have ended.
    """
    mine = connection.execute(_try, {"trial": trial_id, "number": try_number}).first()
    if mine is None:
        return False
    if connection.execute(_running_beside, {"worker": mine.worker, "trial": trial_id}).scalar():
        return True
    beside = {"worker": mine.worker, "trial": trial_id, "since": mine.started_at}
    return bool(connection.execute(_ran_beside, beside).scalar())


def may_claim_of(connection: Connection, worker: str, job_id: int | None, now: datetime) -> MayClaim:
    """What the worker may claim. Usually there are no suspects, and this reads only an empty index."""
    rows = values_of(connection.execute(_suspects, {"worker": worker, "only": job_id, "now": now}))
    if not rows:
        return MayClaim.UNSUSPECTED
    holds = connection.execute(_held, {"worker": worker}).scalar() or 0
    return may_claim(worker, holds, [trial_of(row) for row in rows], now)
