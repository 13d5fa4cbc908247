"""Changes trials: load and lock the rows, call the domain's ``transition``, write back.

The operations that end, queue or cancel trials use this. Claims (``claims.py``), renewals and phases (``trials.py``)
are single statements over many rows. Their WHERE clauses demand what ``transition`` demands, and the contract tests of
the store compare them with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.events import append_events
from seatrial.adapters.store_sql.rows import Values, changing_values, summary_values, trial_of, values_of
from seatrial.adapters.store_sql.tables import IS_HELD, IS_QUEUED, IS_RUNNING, jobs, trials, tries
from seatrial.domain import event_log
from seatrial.domain.event import NewEvent
from seatrial.domain.result import Result
from seatrial.domain.trial import Trial, TrialEvent, TrialState, transition
from seatrial.errors import NotFound, SeatrialError

_job: sa.BindParameter[int] = sa.bindparam("job")

# Locks the rows of the jobs, too. Otherwise two trials that end together could each see the other one still running.
_load = (
    sa.select(trials)
    .join(jobs, jobs.c.id == trials.c.job_id)
    .where(trials.c.id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(jobs.c.id, trials.c.id)
    .with_for_update(of=[jobs, trials], key_share=True)
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

type _Done = Sequence[tuple[Closing, Trial]]


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of the current try of a trial."""

    trial_id: int
    event: TrialEvent
    at: datetime
    result: Result | None = None


def close_tries(connection: Connection, closings: Sequence[Closing]) -> list[Trial | SeatrialError]:
    """Ends the current try of each trial, and the jobs whose last trials these were. Appends the events.

    Returns the trials, in their order, and in the place of each that cannot be closed so the reason."""
    rows = values_of(connection.execute(_load, {"ids": sorted({closing.trial_id for closing in closings})}))
    before = {row["id"]: row for row in rows}
    found = [_closed(before.get(closing.trial_id), closing) for closing in closings]
    done = [(closing, after) for closing, after in zip(closings, found, strict=True) if isinstance(after, Trial)]
    if done:
        _write_closed(connection, before, done)
        append_events(connection, *_facts(connection, done))
    return found


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


def _closed(row: Values | None, closing: Closing) -> Trial | SeatrialError:
    if row is None:
        return NotFound(f"There is no trial {closing.trial_id}.")
    try:
        return transition(trial_of(row), closing.event, closing.at)
    except SeatrialError as refusal:
        return refusal


def _write_closed(connection: Connection, before: dict[int, Values], done: _Done) -> None:
    """Statements for many rows set the same columns in each, so those without a result have their own."""
    for has_result in (True, False):
        some = [(closing, after) for closing, after in done if (closing.result is not None) is has_result]
        if not some:
            continue
        connection.execute(_write_back, [_changed(before[after.id], after, closing.result) for closing, after in some])
        connection.execute(_close_try, [_try_closed(closing, after) for closing, after in some])


def _changed(row: Values, after: Trial, result: Result | None) -> Values:
    return _guard(trial_of(row)) | changing_values(after) | (summary_values(row, result) if result else {})


def _try_closed(closing: Closing, after: Trial) -> Values:
    closed: Values = {"trial": after.id, "current": after.try_number, "ended_at": closing.at}
    if closing.result is not None:
        closed["result"] = closing.result.model_dump_json()
    return closed


def _facts(connection: Connection, done: _Done) -> tuple[list[NewEvent], list[datetime]]:
    """The events, and when each was. The end of a job comes after the last of its trials."""
    facts = [event_log.try_closed(after, closing.result) for closing, after in done]
    moments = [closing.at for closing, _ in done]
    ended = {after.job_id: closing.at for closing, after in done if after.state is TrialState.ENDED}
    for job_id, at in ended.items():
        more = end_job_if_done(connection, job_id, at)
        facts += more
        moments += [at] * len(more)
    return facts, moments


def _guard(trial: Trial) -> dict[str, object]:
    return {
        "was_id": trial.id,
        "was_state": trial.state,
        "was_attempt": trial.try_number,
        "was_cancel_requested": trial.cancel_requested,
    }
