"""Which trials shared a lost worker, and which are suspected. ``domain/fleet/isolation.py`` has the rules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.rows import trial_of, values_of
from seatrial.adapters.store_sql.tables import IS_RUNNING, IS_SUSPECTED, trials, tries
from seatrial.domain.fleet.isolation import divide
from seatrial.domain.fleet.worker_death import Death
from seatrial.domain.trial import Trial, WorkerLost
from seatrial.ports.store import Loss

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
_current = (
    sa.select(trials)
    .where(trials.c.id.in_(sa.bindparam("ids", expanding=True)), IS_RUNNING, trials.c.worker == _worker)
    .order_by(trials.c.id)
    .with_for_update(key_share=True)
)
_suspects = sa.select(trials).where(IS_SUSPECTED).order_by(trials.c.id)
_locked = _suspects.with_for_update(key_share=True)


def was_shared(connection: Connection, trial_id: int, try_number: int) -> bool:
    """Whether the try's worker held other trials at any time during the try.

    Those that ended during the try count, too.
    """
    mine = connection.execute(_try, {"trial": trial_id, "number": try_number}).first()
    if mine is None:
        return False
    if connection.execute(_running_beside, {"worker": mine.worker, "trial": trial_id}).scalar():
        return True
    beside = {"worker": mine.worker, "trial": trial_id, "since": mine.started_at}
    return bool(connection.execute(_ran_beside, beside).scalar())


def open_suspects(connection: Connection, *, lock: bool = False) -> list[Trial]:
    """All suspected trials that have not ended. Usually there are none, and this reads an empty index."""
    return [trial_of(row) for row in values_of(connection.execute(_locked if lock else _suspects))]


def lose_all(
    connection: Connection, worker: str, losses: Sequence[Loss], death: Death, now: datetime
) -> list[tuple[Loss, WorkerLost]]:
    """The event for each loss that is still current."""
    rows = connection.execute(_current, {"ids": sorted(loss.trial_id for loss in losses), "worker": worker})
    held = {trial.id: trial for trial in map(trial_of, values_of(rows))}
    mine = [loss for loss in losses if loss.trial_id in held and held[loss.trial_id].try_number == loss.try_number]
    groups = divide([held[loss.trial_id] for loss in mine])
    return [(loss, _event(connection, loss, death, groups[loss.trial_id], len(mine))) for loss in mine]


def _event(connection: Connection, loss: Loss, death: Death, group: str, held: int) -> WorkerLost:
    shared = held > 1 or was_shared(connection, loss.trial_id, loss.try_number)
    return WorkerLost(try_number=loss.try_number, shared=shared, last=loss.last, death=death, group=group)
