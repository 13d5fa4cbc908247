"""Changes of a job's trials that callers ask for: cancel, release, drop, retry, add, delete. One transaction each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import batched
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.change import change_all, end_job_if_done
from seatrial.adapters.store_sql.events import append_events
from seatrial.adapters.store_sql.rows import trial_of, values_of
from seatrial.adapters.store_sql.specs import IDS_AT_ONCE
from seatrial.adapters.store_sql.tables import (
    IS_ENDED,
    IS_HELD,
    IS_QUEUED,
    IS_RUNNING,
    IS_UNGRADED,
    job_versions,
    jobs,
    trials,
)
from seatrial.adapters.store_sql.tasks import insert_into
from seatrial.domain import event_log
from seatrial.domain.event import NewEvent
from seatrial.domain.trial import CancelAsked, NewTrial, Released, Retried, Trial, TrialState, further_attempt
from seatrial.errors import Conflict, NotFound

_IS_UNFINISHED = sa.or_(IS_HELD, IS_QUEUED, IS_RUNNING)
_last_attempt = sa.select(sa.func.max(trials.c.repeat)).where(
    trials.c.job_id == sa.bindparam("job"),
    trials.c.task_digest == sa.bindparam("digest"),
    trials.c.agent_index == sa.bindparam("agent"),
)
job_version = sa.select(job_versions.c.version).where(
    job_versions.c.job_id == sa.bindparam("job_id"), job_versions.c.name == sa.bindparam("name")
)


def new_trial(job_id: int, trial: NewTrial, state: TrialState, now: datetime) -> dict[str, Any]:
    """The row of a trial that was not claimed."""
    return {
        "job_id": job_id,
        "task_name": trial.task.name,
        "task_digest": trial.task.digest,
        "agent_index": trial.agent_index,
        "agent": trial.agent,
        "model": trial.model,
        "repeat": trial.attempt,
        "reruns": trial.reruns,
        "needs": trial.needs.text,
        "state": state.value,
        "attempt": 0,
        "attempts_base": 0,
        "cancel_requested": False,
        "created_at": now,
    }


def cancel_job(connection: Connection, job_id: int, now: datetime) -> int:
    _lock_jobs(connection, [job_id])
    unfinished = sa.and_(trials.c.job_id == job_id, _IS_UNFINISHED)
    asked = [trial for trial in _lock_trials(connection, unfinished) if not trial.cancel_requested]
    if not asked:
        return 0
    connection.execute(
        sa.update(jobs).where(jobs.c.id == job_id, jobs.c.cancelled_at.is_(None)).values(cancelled_at=now)
    )
    facts = [event_log.job_cancelled(job_id, len(asked)), *_ask_to_stop(connection, asked, now)]
    append_events(connection, facts + end_job_if_done(connection, job_id, now), now)
    return len(asked)


def cancel_trials(connection: Connection, trial_ids: list[int], now: datetime) -> int:
    facts: list[NewEvent] = []
    stopped = 0
    for ids in batched(trial_ids, IDS_AT_ONCE):
        job_ids = _lock_jobs_of(connection, ids)
        unfinished = sa.and_(trials.c.id.in_(ids), _IS_UNFINISHED)
        asked = [trial for trial in _lock_trials(connection, unfinished) if not trial.cancel_requested]
        facts += _ask_to_stop(connection, asked, now)
        for job_id in job_ids:
            facts += end_job_if_done(connection, job_id, now)
        stopped += len(asked)
    append_events(connection, facts, now)
    return stopped


def _ask_to_stop(connection: Connection, asked: list[Trial], now: datetime) -> list[NewEvent]:
    after = change_all(connection, asked, CancelAsked(), now)
    return [event_log.try_closed(trial, None) for trial in after if trial.state is TrialState.ENDED]


def release_trials(connection: Connection, trial_ids: list[int], released: Released, now: datetime) -> int:
    facts: list[NewEvent] = []
    for ids in batched(trial_ids, IDS_AT_ONCE):
        _lock_jobs_of(connection, ids)
        held = _lock_trials(connection, sa.and_(trials.c.id.in_(ids), IS_HELD))
        facts += [event_log.trial_released(trial) for trial in change_all(connection, held, released, now)]
    append_events(connection, facts, now)
    return len(facts)


def drop_trials(connection: Connection, job_id: int, trial_ids: list[int], now: datetime) -> int:
    _lock_jobs(connection, [job_id])
    # A claim that comes first changes the state, and the row is checked again: a claimed trial stays.
    unclaimed = sa.and_(
        trials.c.job_id == job_id, trials.c.reruns.is_(None), trials.c.attempt == 0, sa.or_(IS_HELD, IS_QUEUED)
    )
    dropped = sum(
        connection.execute(sa.delete(trials).where(unclaimed, trials.c.id.in_(ids))).rowcount
        for ids in batched(trial_ids, IDS_AT_ONCE)
    )
    if dropped:
        facts = [event_log.job_trimmed(job_id, dropped), *end_job_if_done(connection, job_id, now)]
        append_events(connection, facts, now)
    return dropped


def _lock_jobs_of(connection: Connection, trial_ids: Sequence[int]) -> list[int]:
    rows = connection.execute(sa.select(trials.c.id, trials.c.job_id).where(trials.c.id.in_(trial_ids))).all()
    if missing := set(trial_ids) - {row.id for row in rows}:
        raise NotFound(f"There is no trial {min(missing)}.")
    job_ids = sorted({row.job_id for row in rows})
    _lock_jobs(connection, job_ids)
    return job_ids


def retry_trials(connection: Connection, trial_ids: list[int], now: datetime, hold: bool) -> int:
    facts: list[NewEvent] = []
    for ids in batched(trial_ids, IDS_AT_ONCE):
        _lock_jobs_of(connection, ids)
        ended = _lock_trials(connection, sa.and_(trials.c.id.in_(ids), IS_ENDED, IS_UNGRADED))
        facts += [event_log.trial_retried(trial) for trial in change_all(connection, ended, Retried(hold=hold), now)]
        _reopen(connection, {trial.job_id for trial in ended})
    append_events(connection, facts, now)
    return len(facts)


def add_attempts(connection: Connection, trial_ids: Sequence[int], now: datetime, hold: bool) -> list[int]:
    state = TrialState.HELD if hold else TrialState.QUEUED
    added: list[Trial] = []
    for ids in batched(sorted(set(trial_ids)), IDS_AT_ONCE):
        _lock_jobs_of(connection, ids)  # so that two callers do not give the same number
        graded = _lock_trials(connection, sa.and_(trials.c.id.in_(ids), IS_ENDED, ~IS_UNGRADED))
        for trial in graded:
            last = connection.execute(_last_attempt, _cell(trial)).scalar_one()
            values = new_trial(trial.job_id, further_attempt(trial, last + 1), state, now)
            row = connection.execute(sa.insert(trials).values(values).returning(trials))
            added += map(trial_of, values_of(row))
        _reopen(connection, {trial.job_id for trial in graded})
    append_events(connection, [event_log.trial_added(trial) for trial in added], now)
    return [trial.id for trial in added]


def _cell(trial: Trial) -> dict[str, Any]:
    return {"job": trial.job_id, "digest": trial.task.digest, "agent": trial.agent_index}


def _reopen(connection: Connection, job_ids: set[int]) -> None:
    connection.execute(sa.update(jobs).where(jobs.c.id.in_(job_ids)).values(cancelled_at=None, ended_at=None))


def record_version(connection: Connection, job_id: int, name: str, version: str) -> str:
    """The first that is recorded stays."""
    _lock_jobs(connection, [job_id])
    row = {"job_id": job_id, "name": name, "version": version}
    connection.execute(insert_into(connection, job_versions).on_conflict_do_nothing(), [row])
    return str(connection.execute(job_version, {"job_id": job_id, "name": name}).scalar_one())


def delete_job(connection: Connection, job_id: int) -> None:
    _lock_jobs(connection, [job_id])
    gone = connection.execute(sa.delete(jobs).where(jobs.c.id == job_id, jobs.c.ended_at.is_not(None))).rowcount
    if not gone:
        raise Conflict(f"Job {job_id} has trials left to do.", fix=f"Cancel it first: seatrial job cancel {job_id}")


def _lock_jobs(connection: Connection, job_ids: list[int]) -> None:
    query = sa.select(jobs.c.id).where(jobs.c.id.in_(job_ids)).order_by(jobs.c.id).with_for_update(key_share=True)
    found = set(connection.execute(query).scalars())
    if missing := set(job_ids) - found:
        raise unknown_job(min(missing))


def _lock_trials(connection: Connection, which: sa.ColumnElement[bool]) -> list[Trial]:
    query = sa.select(trials).where(which).order_by(trials.c.id).with_for_update(key_share=True)
    return [trial_of(row) for row in values_of(connection.execute(query))]


def unknown_job(job_id: int) -> NotFound:
    return NotFound(f"There is no job {job_id}.")
