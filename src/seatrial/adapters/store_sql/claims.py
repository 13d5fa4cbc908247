"""Claims trials for a worker, in one transaction. Its cost does not depend on how many trials have ended.

Jobs take turns. Each claim starts after the job that was served last and takes one trial per job and round, up to the
concurrency of each job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import zip_longest

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.rows import trial_of, values_of
from seatrial.adapters.store_sql.shared_workers import open_suspects
from seatrial.adapters.store_sql.tables import IS_QUEUED, IS_RUNNING, jobs, trials, tries
from seatrial.domain.isolation import SHARED_LOSSES_ALLOWED, Suspects, may_take, waiting
from seatrial.domain.trial import Phase, Trial, TrialState
from seatrial.ports.seal import SEPARATOR


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """The request of a worker."""

    worker: str
    lease: timedelta
    limit: int
    now: datetime
    job_id: int | None = None
    after_job: int = 0
    """The job that was served last. The claim starts with the job after it."""
    seal: str | None = None
    """Fingerprint of the worker's secret key. ``None`` also takes jobs whose keys were sealed with another one."""
    group: str | None = None
    """Only suspected trials of this group; ``None`` means only trials that are not suspected."""

    @property
    def suspected(self) -> bool:
        return self.group is not None


@dataclass(slots=True)
class _Share:
    """A job with trials to claim, and the trials that are taken from it."""

    job_id: int
    room: int
    taken: list[int] = field(default_factory=list)


_now = sa.bindparam("now", type_=trials.c.not_before.type)
_is_ready = sa.or_(trials.c.not_before.is_(None), trials.c.not_before <= _now)
_is_wanted = sa.or_(sa.bindparam("only", type_=sa.BigInteger).is_(None), jobs.c.id == sa.bindparam("only"))
_running = sa.select(sa.func.count()).where(trials.c.job_id == jobs.c.id, IS_RUNNING).correlate(jobs).scalar_subquery()
_is_suspected = trials.c.shared_losses >= SHARED_LOSSES_ALLOWED
_is_open = jobs.c.ended_at.is_(None)

_seal = sa.bindparam("seal", type_=sa.Text)
_can_open = sa.or_(
    _seal.is_(None),
    jobs.c.sealed_keys.is_(None),
    jobs.c.sealed_keys.not_like(f"%{SEPARATOR}%"),  # older versions stored no fingerprint
    jobs.c.sealed_keys.like(_seal + f"{SEPARATOR}%"),
)

# Locks jobs with a limit, so that two claims do not use the same free place.
_lock_limited = (
    sa.select(jobs.c.id)
    .where(_is_open, jobs.c.concurrency.is_not(None), _is_wanted)
    .order_by(jobs.c.id)
    .with_for_update(key_share=True)
)
_servable = (
    sa.select(jobs.c.id, sa.case((jobs.c.concurrency.is_not(None), jobs.c.concurrency - _running)).label("room"))
    .where(
        _is_open,
        _is_wanted,
        _can_open,
        sa.or_(jobs.c.concurrency.is_(None), jobs.c.concurrency > _running),
        sa.exists().where(
            trials.c.job_id == jobs.c.id, IS_QUEUED, _is_ready, _is_suspected == sa.bindparam("suspected")
        ),
    )
    .order_by(jobs.c.id <= sa.bindparam("after_job"), jobs.c.id)
    .limit(sa.bindparam("limit"))
)
_first_in_line = (
    sa.select(trials.c.id)
    .where(
        trials.c.job_id == sa.bindparam("job"),
        IS_QUEUED,
        _is_ready,
        _is_suspected == sa.bindparam("suspected"),
        trials.c.id > sa.bindparam("after"),
    )
    .order_by(trials.c.id)
    .limit(sa.bindparam("limit"))
    .with_for_update(skip_locked=True)
)
_take = (
    sa.update(trials)
    .where(trials.c.id.in_(sa.bindparam("ids", expanding=True)), IS_QUEUED)
    .values(attempt=trials.c.attempt + 1)
    .returning(trials)
)
_start_tries = sa.insert(tries)


def claim_trials(connection: Connection, request: ClaimRequest) -> list[Trial]:
    """Claims trials and returns them in the order of the turns. Writes what ``transition`` gives for ``Claimed``."""
    order = _chosen(connection, request) if request.group is None else _of_group(connection, request)
    return _taken(connection, order, request) if order else []


def waiting_suspects(connection: Connection, request: ClaimRequest) -> list[Suspects]:
    """The groups of which this worker could claim something. Usually this reads only an empty index."""
    suspects = open_suspects(connection)
    servable = {share.job_id for share in _servable_jobs(connection, request)} if suspects else set[int]()
    return waiting([one for one in suspects if one.state is TrialState.RUNNING or one.job_id in servable], request.now)


def _of_group(connection: Connection, request: ClaimRequest) -> list[int]:
    """The first trials of a group, within the limits of their jobs. Locks the group against other workers."""
    _lock_jobs(connection, request)
    shares = {share.job_id: share for share in _servable_jobs(connection, request)}
    for trial in may_take(request.worker, request.group or "", open_suspects(connection, lock=True), request.now):
        share = shares.get(trial.job_id)
        if share is not None and len(share.taken) < share.room:
            share.taken.append(trial.id)
    return _by_turns(list(shares.values()))[: request.limit]


def _chosen(connection: Connection, request: ClaimRequest) -> list[int]:
    _lock_jobs(connection, request)
    shares = _servable_jobs(connection, request)
    _share_out(connection, shares, request)
    return _by_turns(shares)


def _taken(connection: Connection, order: list[int], request: ClaimRequest) -> list[Trial]:
    values = {
        "ids": order,
        "state": TrialState.RUNNING,
        "worker": request.worker,
        "lease_until": request.now + request.lease,
        "not_before": None,
        "phase": Phase.PREPARING,
        "started_at": request.now,
    }
    taken = {row["id"]: trial_of(row) for row in values_of(connection.execute(_take, values))}
    claimed = [taken[trial_id] for trial_id in order if trial_id in taken]
    connection.execute(
        _start_tries,
        [
            {"trial_id": trial.id, "number": trial.try_number, "worker": request.worker, "started_at": request.now}
            for trial in claimed
        ],
    )
    return claimed


def _lock_jobs(connection: Connection, request: ClaimRequest) -> None:
    if connection.dialect.name != "sqlite":  # SQLite has one writer, so it needs no lock
        connection.execute(_lock_limited, {"only": request.job_id}).all()


def _servable_jobs(connection: Connection, request: ClaimRequest) -> list[_Share]:
    query = {
        "only": request.job_id,
        "now": request.now,
        "after_job": request.after_job,
        "limit": request.limit,
        "suspected": request.suspected,
        "seal": request.seal,
    }
    rows = connection.execute(_servable, query)
    return [_Share(row.id, request.limit if row.room is None else min(row.room, request.limit)) for row in rows]


def _share_out(connection: Connection, shares: Sequence[_Share], request: ClaimRequest) -> None:
    """Gives every job the same share. What a job cannot use goes to the others in the next round."""
    wanted = request.limit
    unfilled = list(shares)
    while wanted and unfilled:
        part, rest = divmod(wanted, len(unfilled))
        next_round = []
        for turn, share in enumerate(unfilled):
            size = min(part + (turn < rest), share.room - len(share.taken))
            got = _next_in_line(connection, share, size, request) if size else []
            share.taken += got
            wanted -= len(got)
            if len(got) == size and share.room > len(share.taken):
                next_round.append(share)
        unfilled = sorted(next_round, key=lambda share: len(share.taken))


def _next_in_line(connection: Connection, share: _Share, size: int, request: ClaimRequest) -> list[int]:
    query = {
        "job": share.job_id,
        "now": request.now,
        "after": share.taken[-1] if share.taken else 0,
        "limit": size,
        "suspected": request.suspected,
    }
    return list(connection.execute(_first_in_line, query).scalars())


def _by_turns(shares: Sequence[_Share]) -> list[int]:
    rounds = zip_longest(*(share.taken for share in shares))
    return [trial_id for turn in rounds for trial_id in turn if trial_id is not None]
