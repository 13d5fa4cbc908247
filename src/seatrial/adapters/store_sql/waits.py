"""Trials that wait for room on a worker. After some minutes nothing overtakes them.

``domain/fleet/packing.py`` has the rule. ``claims.py`` writes down the first trial in line that it passed over for lack
of room. Usually the table is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.tables import trials, waits
from seatrial.adapters.store_sql.tasks import insert_into
from seatrial.domain.fleet.needs import Needs
from seatrial.domain.fleet.packing import HOLD, PATIENCE, Offer
from seatrial.domain.trial import SHARED_LOSSES_ALLOWED, TrialState

_MOST = 200
_MOST_OVERDUE = 10
"""A claim looks at this many overdue trials, the oldest first."""
_all = (
    sa.select(waits, trials.c.job_id, trials.c.needs, trials.c.state, trials.c.shared_losses)
    .join(trials, trials.c.id == waits.c.trial_id)
    .order_by(waits.c.since, waits.c.trial_id)
    .limit(_MOST)
)
_keep_room = sa.update(waits).where(waits.c.trial_id == sa.bindparam("trial"))
_forget = sa.delete(waits).where(waits.c.trial_id.in_(sa.bindparam("ids", expanding=True)))


@dataclass(frozen=True, slots=True)
class Overdue:
    """A trial that has waited too long, and that this worker can hold."""

    trial_id: int
    job_id: int
    needs: str
    keeps_room: bool
    """Whether this worker has to keep room free for it."""


@dataclass(frozen=True, slots=True)
class Waiting:
    overdue: Sequence[Overdue] = ()
    known: frozenset[int] = frozenset()
    over: list[int] = field(default_factory=list)
    """Trials that do not wait any more, because a worker without packing took them."""

    def keep_room_for(self, connection: Connection, overdue: Overdue, worker: str, now: datetime) -> None:
        connection.execute(_keep_room, {"trial": overdue.trial_id, "worker": worker, "until": now + HOLD})


def read_waits(connection: Connection, worker: str, offer: Offer, now: datetime) -> Waiting:
    rows = connection.execute(_all).all()
    if not rows:
        return Waiting()
    found = []
    for row in rows:
        needs = Needs.parse(row.needs)
        suspected = row.shared_losses >= SHARED_LOSSES_ALLOWED
        late = row.since + PATIENCE <= now
        if row.state != TrialState.QUEUED or suspected or not late or not offer.may_ever_run(needs):
            continue
        mine = row.worker in (None, worker) or row.until is None or row.until <= now
        found.append(Overdue(row.trial_id, row.job_id, row.needs, mine and offer.must_keep_room(needs)))
    over = [row.trial_id for row in rows if row.state != TrialState.QUEUED]
    return Waiting(found[:_MOST_OVERDUE], frozenset(row.trial_id for row in rows), over)


def note_waits(connection: Connection, trial_ids: Sequence[int], now: datetime) -> None:
    if trial_ids:
        values = [{"trial_id": trial_id, "since": now} for trial_id in trial_ids]
        connection.execute(insert_into(connection, waits).on_conflict_do_nothing(), values)


def forget_waits(connection: Connection, waiting: Waiting, claimed: Sequence[int]) -> None:
    gone = sorted({*waiting.over, *(waiting.known & set(claimed))})
    if gone:
        connection.execute(_forget, {"ids": gone})
