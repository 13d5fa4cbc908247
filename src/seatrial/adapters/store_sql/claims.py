"""Claims trials for a worker, in one transaction. Its cost does not depend on how many trials have ended.

Jobs take turns. Each claim starts after the job that was served last and takes one trial per job and round, up to the
concurrency of each job.

A trial that the worker cannot run, or has no room for, is passed over. Usually there is none: the claim looks at the
needs of all trials (``needs`` in the tables) only after it met one. ``waits.py`` ends their waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice, zip_longest
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.rows import trial_of, values_of
from seatrial.adapters.store_sql.shared_workers import open_suspects
from seatrial.adapters.store_sql.tables import IS_QUEUED, IS_RUNNING, jobs, needs, trials, tries
from seatrial.adapters.store_sql.waits import Waiting, forget_waits, note_waits, read_waits
from seatrial.domain.fleet.isolation import SHARED_LOSSES_ALLOWED, Suspects, may_take, waiting
from seatrial.domain.fleet.needs import Needs
from seatrial.domain.fleet.packing import EVERYTHING, Offer, Size
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
    offer: Offer = EVERYTHING
    notes_waits: bool = False
    """Whether to write down which trials were passed over for lack of room."""

    @property
    def suspected(self) -> bool:
        return self.group is not None


@dataclass(slots=True)
class _Share:
    """A job with trials to claim, and the trials that are taken from it."""

    job_id: int
    places: int
    """How many more of its trials may run at once."""
    taken: list[int] = field(default_factory=list)
    after: int = 0
    """The last trial that was looked at."""


@dataclass(slots=True)
class _RemainingOffer:
    """What is left of the worker's offer during a claim."""

    offer: Offer
    only: list[str] | None = None
    """The needs that the worker can run and has room for; ``None`` while nothing was passed over."""
    passed_over: bool = False

    def takes(self, text: str, share: Size | None) -> bool | None:
        """Whether a trial fits, and ``None`` if it fits but is more than the share of its job in this round."""
        found = Needs.parse(text)
        if not (self.offer.may_ever_run(found) and self.offer.fits(found)):
            self.passed_over = True
            return False
        if share is not None and not share.holds(self.offer.demand(found)):
            return None
        return True

    def take(self, text: str) -> Size:
        demand = self.offer.demand(Needs.parse(text))
        self.offer = self.offer.after(Needs.parse(text))
        return demand

    def share(self, jobs: int) -> Size | None:
        free = self.offer.free
        return None if self.offer.packing is None else Size(memory_mb=free.memory_mb // jobs, cpus=free.cpus / jobs)


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


def _servable(*which: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Open jobs with a due trial of this kind, the next one first."""
    due = sa.exists().where(
        trials.c.job_id == jobs.c.id, IS_QUEUED, _is_ready, _is_suspected == sa.bindparam("suspected"), *which
    )
    places = sa.case((jobs.c.concurrency.is_not(None), jobs.c.concurrency - _running)).label("places")
    return (
        sa.select(jobs.c.id, places)
        .where(
            _is_open, _is_wanted, _can_open, sa.or_(jobs.c.concurrency.is_(None), jobs.c.concurrency > _running), due
        )
        .order_by(jobs.c.id <= sa.bindparam("after_job"), jobs.c.id)
        .limit(sa.bindparam("limit"))
    )


def _in_line(*which: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return (
        sa.select(trials.c.id, trials.c.needs)
        .where(
            trials.c.job_id == sa.bindparam("job"),
            IS_QUEUED,
            _is_ready,
            _is_suspected == sa.bindparam("suspected"),
            trials.c.id > sa.bindparam("after"),
            *which,
        )
        .order_by(trials.c.id)
        .limit(sa.bindparam("limit"))
        .with_for_update(skip_locked=True)
    )


_servable_all = _servable()
_servable_some = _servable(trials.c.needs.in_(sa.bindparam("needs", expanding=True)))
_first_in_line = _in_line()
_first_with_needs = _in_line(trials.c.needs == sa.bindparam("text"))
_all_needs = sa.select(needs.c.text)
_needs_of_job = sa.select(needs.c.text).where(
    needs.c.text.in_(sa.bindparam("needs", expanding=True)),
    sa.exists().where(trials.c.job_id == sa.bindparam("job"), IS_QUEUED, trials.c.needs == needs.c.text),
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
    _lock_jobs(connection, request)
    if request.group is None:
        return _unsuspected(connection, request)
    return _taken(connection, _of_group(connection, request), request)


def waiting_suspects(connection: Connection, request: ClaimRequest) -> list[Suspects]:
    """The groups of which this worker could claim something. Usually this reads only an empty index."""
    suspects = open_suspects(connection)
    servable = {share.job_id for share in _servable_jobs(connection, request, None)} if suspects else set[int]()
    return waiting([one for one in suspects if one.state is TrialState.RUNNING or one.job_id in servable], request.now)


def _of_group(connection: Connection, request: ClaimRequest) -> list[int]:
    """The first trials of a group, within the limits of their jobs. Locks the group against other workers."""
    remaining = _RemainingOffer(request.offer)
    shares = {share.job_id: share for share in _servable_jobs(connection, request, None)}
    for trial in may_take(request.worker, request.group or "", open_suspects(connection, lock=True), request.now):
        share = shares.get(trial.job_id)
        if share is not None and len(share.taken) < share.places and remaining.takes(trial.needs.text, None):
            remaining.take(trial.needs.text)
            share.taken.append(trial.id)
    return _by_turns(list(shares.values()))[: request.limit]


def _unsuspected(connection: Connection, request: ClaimRequest) -> list[Trial]:
    """Trials that waited too long for room come first. Nothing overtakes one for which room must be kept."""
    remaining, waiting = _RemainingOffer(request.offer), Waiting()
    if request.offer.packing is not None and request.limit:
        waiting = read_waits(connection, request.worker, request.offer, request.now)
    claimed, keeps_room = _overdue(connection, request, remaining, waiting)
    if not keeps_room:
        rest = replace(request, limit=request.limit - len(claimed))
        claimed += _taken(connection, _chosen(connection, rest, remaining), request)
    forget_waits(connection, waiting, [trial.id for trial in claimed])
    if remaining.passed_over and request.offer.packing is not None and request.notes_waits:
        _note_passed_over(connection, replace(request, offer=remaining.offer))
    return claimed


def _overdue(
    connection: Connection, request: ClaimRequest, remaining: _RemainingOffer, waiting: Waiting
) -> tuple[list[Trial], bool]:
    """Takes trials that waited too long. Also returns whether room is kept for one that does not fit yet."""
    claimed: list[Trial] = []
    for overdue in waiting.overdue:
        if len(claimed) == request.limit or not _is_servable(connection, overdue.job_id, overdue.needs, request):
            continue
        if remaining.takes(overdue.needs, None):
            remaining.take(overdue.needs)
            claimed += _taken(connection, [overdue.trial_id], request)
        elif overdue.keeps_room:
            waiting.keep_room_for(connection, overdue, request.worker, request.now)
            return claimed, True
    return claimed, False


def _is_servable(connection: Connection, job_id: int, text: str, request: ClaimRequest) -> bool:
    if request.job_id not in (None, job_id):
        return False
    return bool(_servable_jobs(connection, replace(request, job_id=job_id, limit=1), [text]))


def _note_passed_over(connection: Connection, request: ClaimRequest) -> None:
    """Of each job the first trial that this worker could run, if it had room."""
    offer = request.offer
    known = (text for text in connection.execute(_all_needs).scalars())
    blocked = [text for text in known if offer.may_ever_run(kind := Needs.parse(text)) and not offer.fits(kind)]
    found: list[int] = []
    for share in _servable_jobs(connection, request, blocked) if blocked else ():
        found += [trial_id for trial_id, _ in _candidates(connection, share, 1, request, blocked)]
    note_waits(connection, found, request.now)


def _chosen(connection: Connection, request: ClaimRequest, remaining: _RemainingOffer) -> list[int]:
    if not request.limit:
        return []
    shares = _servable_jobs(connection, request, None)
    _share_out(connection, shares, request, remaining)
    left = request.limit - sum(len(share.taken) for share in shares)
    if left and remaining.passed_over:  # look again, now only at what the worker can run and has room for
        remaining.only = _fitting(connection, remaining.offer)
        more = (
            _servable_jobs(connection, replace(request, limit=left + len(shares)), remaining.only)
            if remaining.only
            else []
        )
        shares = _joined(shares, more)
        _share_out(connection, shares, replace(request, limit=left), remaining)
    return _by_turns(shares)


def _fitting(connection: Connection, offer: Offer) -> list[str]:
    texts = connection.execute(_all_needs).scalars()
    return [text for text in texts if offer.may_ever_run(found := Needs.parse(text)) and offer.fits(found)]


def _joined(shares: Sequence[_Share], more: Sequence[_Share]) -> list[_Share]:
    """Jobs of both passes. The first pass may have served a job already."""
    known = {share.job_id: share for share in shares}
    found = {share.job_id for share in more}
    return [share for share in shares if share.taken or share.job_id in found] + [
        share for share in more if share.job_id not in known
    ]


def _taken(connection: Connection, order: list[int], request: ClaimRequest) -> list[Trial]:
    if not order:
        return []
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
    if claimed:
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


def _servable_jobs(connection: Connection, request: ClaimRequest, only: list[str] | None) -> list[_Share]:
    """``only``: jobs that have trials with these needs."""
    query = {
        "only": request.job_id,
        "now": request.now,
        "after_job": request.after_job,
        "limit": request.limit,
        "suspected": request.suspected,
        "seal": request.seal,
    }
    rows = (
        connection.execute(_servable_all, query)
        if only is None
        else connection.execute(_servable_some, query | {"needs": only})
    )
    return [_Share(row.id, request.limit if row.places is None else min(row.places, request.limit)) for row in rows]


def _share_out(
    connection: Connection, shares: Sequence[_Share], request: ClaimRequest, remaining: _RemainingOffer
) -> None:
    """Gives every job the same share. What a job cannot use goes to the others in the next round."""
    wanted = request.limit
    unfilled = [share for share in shares if share.places > len(share.taken)]
    while wanted and unfilled:
        part, rest = divmod(wanted, len(unfilled))
        budget = remaining.share(len(unfilled))
        next_round = []
        for turn, share in enumerate(unfilled):
            size = min(part + (turn < rest), share.places - len(share.taken))
            got, more = _next_in_line(connection, share, size, request, remaining, budget) if size else (0, False)
            wanted -= got
            if more and share.places > len(share.taken):
                next_round.append(share)
        unfilled = sorted(next_round, key=lambda share: len(share.taken))


def _next_in_line(
    connection: Connection,
    share: _Share,
    size: int,
    request: ClaimRequest,
    remaining: _RemainingOffer,
    budget: Size | None,
) -> tuple[int, bool]:
    """Takes trials of a job, at most ``size`` and, after the first, within ``budget``. Returns how many, and whether
    the job may have more."""
    found = _candidates(connection, share, size, request, remaining.only)
    got = 0
    for trial_id, text in found:
        takes = remaining.takes(text, budget if got else None)
        if takes is None:
            return got, True
        share.after = trial_id
        if takes:
            demand = remaining.take(text)
            budget = None if budget is None else budget.less(demand)
            share.taken.append(trial_id)
            got += 1
    return got, len(found) == size


def _candidates(
    connection: Connection, share: _Share, size: int, request: ClaimRequest, only: list[str] | None
) -> list[tuple[int, str]]:
    query = {
        "job": share.job_id,
        "now": request.now,
        "after": share.after,
        "limit": size,
        "suspected": request.suspected,
    }
    if only is None:
        return [(row.id, row.needs) for row in connection.execute(_first_in_line, query)]
    texts = connection.execute(_needs_of_job, {"job": share.job_id, "needs": only}).scalars().all()
    lines = [connection.execute(_first_with_needs, query | {"text": text}).all() for text in texts]
    return [(row.id, row.needs) for row in islice(merge(*lines, key=lambda row: row.id), size)]


def _by_turns(shares: Sequence[_Share]) -> list[int]:
    rounds = zip_longest(*(share.taken for share in shares))
    return [trial_id for turn in rounds for trial_id in turn if trial_id is not None]
