"""Changes trials: load the row, call the domain's ``transition``, write back if the row is unchanged.

The operations that end, queue or cancel trials use this. Claims (``claims.py``), renewals and phases (``trials.py``)
are single statements over many rows. Their WHERE clauses demand what ``transition`` demands, and the contract tests of
the store compare them with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.events import append_events
from seatrial.adapters.store_sql.rows import changing_values, summary_values, trial_of, values_of
from seatrial.adapters.store_sql.tables import IS_HELD, IS_QUEUED, IS_RUNNING, jobs, trials, tries
from seatrial.domain import event_log
from seatrial.domain.event import NewEvent
from seatrial.domain.result import Result
from seatrial.domain.trial import Trial, TrialEvent, TrialState, transition
from seatrial.errors import NotFound

_job: sa.BindParameter[int] = sa.bindparam("job")

# Locks the row of the job. Otherwise two trials that end together could each see the other one still running.
_load = (
    sa.select(trials)
    .join(jobs, jobs.c.id == trials.c.job_id)
    .where(trials.c.id == sa.bindparam("trial"))
    .with_for_update(of=jobs, key_share=True)
)
_write_back = sa.update(trials).where(
    trials.c.id == sa.bindparam("was_id"),
    trials.c.state == sa.bindparam("was_state"),
    trials.c.attempt == sa.bindparam("was_attempt"),
    trials.c.cancel_requested == sa.bindparam("was_cancel_requested"),
)
_close_try = sa.update(tries).where(
    tries.c.trial_id == sa.bindparam("trial"), tries.c.number == sa.bindparam("current")
)
_still_open = sa.select(
    sa.or_(
        sa.exists().where(trials.c.job_id == _job, IS_QUEUED),
        sa.exists().where(trials.c.job_id == _job, IS_RUNNING),
        sa.exists().where(trials.c.job_id == _job, IS_HELD),
    )
)
_end_job = sa.update(jobs).where(jobs.c.id == _job, jobs.c.ended_at.is_(None))


def close_try(connection: Connection, trial_id: int, event: TrialEvent, now: datetime, result: Result | None) -> Trial:
    """Ends the current try, and the job if this was its last trial. Appends the events."""
    after = _compare_and_set(connection, trial_id, event, now, result)
    closed = {"trial": trial_id, "current": after.try_number, "ended_at": now}
    if result is not None:
        closed["result"] = result.model_dump_json()
    connection.execute(_close_try, closed)
    facts = [event_log.try_closed(after, result)]
    if after.state is TrialState.ENDED:
        facts += end_job_if_done(connection, after.job_id, now)
    append_events(connection, facts, now)
    return after


def change_all(connection: Connection, before: Iterable[Trial], event: TrialEvent, now: datetime) -> list[Trial]:
    """Applies one event to many trials. The caller holds the locks of their rows."""
    pairs = [(trial, transition(trial, event, now)) for trial in before]
    if pairs:
        connection.execute(_write_back, [_guard(was) | changing_values(after) for was, after in pairs])
    return [after for _, after in pairs]


def end_job_if_done(connection: Connection, job_id: int, now: datetime) -> list[NewEvent]:
    """Ends the job if all of its trials have ended, and returns the event for it."""
    if connection.execute(_still_open, {"job": job_id}).scalar():
        return []
    # The provider keys of a job are deleted when its last trial ends.
    ended = connection.execute(_end_job, {"job": job_id, "ended_at": now, "sealed_keys": None}).rowcount
    return [event_log.job_ended(job_id)] if ended else []


def _compare_and_set(
    connection: Connection, trial_id: int, event: TrialEvent, now: datetime, result: Result | None
) -> Trial:
    while True:
        row = next(iter(values_of(connection.execute(_load, {"trial": trial_id}))), None)
        if row is None:
            raise NotFound(f"There is no trial {trial_id}.")
        was = trial_of(row)
        after = transition(was, event, now)
        values = changing_values(after) | (summary_values(row, result) if result is not None else {})
        if connection.execute(_write_back, _guard(was) | values).rowcount:
            return after


def _guard(trial: Trial) -> dict[str, object]:
    return {
        "was_id": trial.id,
        "was_state": trial.state,
        "was_attempt": trial.try_number,
        "was_cancel_requested": trial.cancel_requested,
    }
