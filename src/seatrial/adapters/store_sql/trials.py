"""Claims, renews, ends and reads trials."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.change import Closing, close_tries
from seatrial.adapters.store_sql.claims import ClaimRequest, claim_trials, waiting_suspects
from seatrial.adapters.store_sql.closings import Closings
from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.events import append_events
from seatrial.adapters.store_sql.rows import (
    NUMBERS,
    failed_of,
    numbers_of,
    summary_of,
    trial_of,
    trial_row_of,
    try_of,
    values_of,
)
from seatrial.adapters.store_sql.shared_workers import lose_all
from seatrial.adapters.store_sql.specs import JobSpecs
from seatrial.adapters.store_sql.tables import IS_ENDED, IS_QUEUED, IS_RUNNING, needs, trials, tries
from seatrial.adapters.store_sql.triage_filter import narrow_triage
from seatrial.domain import event_log
from seatrial.domain.fleet.isolation import Suspects
from seatrial.domain.fleet.needs import Needs
from seatrial.domain.fleet.packing import EVERYTHING, Offer
from seatrial.domain.fleet.worker_death import Death
from seatrial.domain.result import Result, Try
from seatrial.domain.trial import Ended, GivenBack, Outcome, Trial, TrialEvent, TrialState, TryAgain
from seatrial.errors import NotFound
from seatrial.ports.store import (
    FailedRow,
    Loss,
    Page,
    PhaseEntry,
    RenewalReport,
    TrialFilter,
    TrialHistory,
    TrialNumbers,
    TrialRow,
    TrialSummary,
)

_queued_needs = (
    sa.select(needs.c.text)
    .where(sa.exists().where(trials.c.job_id == sa.bindparam("job"), IS_QUEUED, trials.c.needs == needs.c.text))
    .order_by(needs.c.text)
)
_CHUNK = 200
_NOTING = timedelta(seconds=5)
"""Trials without room are written down this often at most."""

_held = (
    sa.select(trials.c.id, trials.c.attempt, trials.c.worker, trials.c.cancel_requested)
    .where(trials.c.id.in_(sa.bindparam("ids", expanding=True)), IS_RUNNING)
    .order_by(trials.c.id)
    .with_for_update(key_share=True)
)
_any_due = sa.select(
    sa.exists().where(
        IS_QUEUED,
        trials.c.job_id > sa.literal_column("0"),
        sa.or_(
            trials.c.not_before.is_(None), trials.c.not_before <= sa.bindparam("now", type_=trials.c.not_before.type)
        ),
    )
)
_renew = sa.update(trials).where(trials.c.id.in_(sa.bindparam("ids", expanding=True)))
_moment: sa.BindParameter[datetime] = sa.bindparam("moment", type_=trials.c.created_at.type)
_due_since = (
    sa.select(sa.literal(1).label("found"))
    .where(IS_QUEUED, trials.c.job_id > sa.literal_column("0"), trials.c.created_at <= _moment)
    .where(sa.or_(trials.c.not_before.is_(None), trials.c.not_before <= _moment))
    .limit(1)
)
_running_by_worker = (
    sa.select(trials.c.worker, sa.func.count().label("trials")).where(IS_RUNNING).group_by(trials.c.worker)
)
_enter = sa.update(trials).where(trials.c.id == sa.bindparam("trial"))
_with_result = sa.select(trials, tries.c.result).outerjoin(
    tries, sa.and_(tries.c.trial_id == trials.c.id, tries.c.number == trials.c.result_attempt)
)

_by_id = _with_result.where(trials.c.id == sa.bindparam("id"))
_tries_of = sa.select(tries).where(tries.c.trial_id == sa.bindparam("id")).order_by(tries.c.number)
_TRY = "try_"
"""Prefix of the columns of a try in a query that also selects its trial."""
_history = (
    sa.select(trials, *(column.label(f"{_TRY}{column.name}") for column in tries.c))
    .outerjoin(tries, tries.c.trial_id == trials.c.id)
    .where(trials.c.id == sa.bindparam("id"))
    .order_by(tries.c.number)
)
_failed = (
    _with_result.where(trials.c.job_id == sa.bindparam("job"), trials.c.reruns.is_(None))
    .where(IS_ENDED, trials.c.outcome.in_([Outcome.FAILED.value, Outcome.ERROR.value]))
    .order_by(trials.c.id)
    .with_only_columns(
        trials.c.id,
        trials.c.task_name,
        trials.c.task_digest,
        trials.c.agent_index,
        trials.c.repeat,
        trials.c.outcome,
        trials.c.cause,
        trials.c.marks,
        tries.c.result,
    )
)
_numbers = sa.select(*NUMBERS).where(trials.c.job_id == sa.bindparam("job")).order_by(trials.c.id)


class SqlTrials:
    def __init__(self, database: Database, specs: JobSpecs) -> None:
        self._database = database
        self._specs = specs
        self._closings = Closings(database)
        self._served_last = 0
        self._note_waits_at = datetime.min.replace(tzinfo=UTC)

    async def claim(
        self,
        worker: str,
        lease: timedelta,
        limit: int,
        now: datetime,
        job_id: int | None = None,
        seal: str | None = None,
        group: str | None = None,
        offer: Offer = EVERYTHING,
    ) -> list[Trial]:
        notes = now >= self._note_waits_at
        request = ClaimRequest(worker, lease, limit, now, job_id, self._served_last, seal, group, offer, notes)

        def operation(connection: Connection) -> list[Trial]:
            claimed = claim_trials(connection, request)
            append_events(connection, [event_log.trial_claimed(trial) for trial in claimed], now)
            return claimed

        claimed = await self._database.write(operation)
        if notes:
            self._note_waits_at = now + _NOTING
        if claimed and job_id is None and group is None:
            self._served_last = claimed[-1].job_id
        return claimed

    async def suspects(self, now: datetime, job_id: int | None = None, seal: str | None = None) -> list[Suspects]:
        request = ClaimRequest("", timedelta(0), _CHUNK, now, job_id, 0, seal, group="")
        return await self._database.read(lambda connection: waiting_suspects(connection, request))

    async def queued_needs(self, job_id: int) -> list[Needs]:
        return [Needs.parse(text) for text in await self._database.column(_queued_needs, {"job": job_id})]

    async def renew(self, worker: str, held: dict[int, int], lease: timedelta, now: datetime) -> RenewalReport:
        def operation(connection: Connection) -> RenewalReport:
            rows = connection.execute(_held, {"ids": sorted(held)}).all()
            kept = [row for row in rows if row.attempt == held[row.id] and row.worker == worker]
            ids = [row.id for row in kept]
            if ids:
                connection.execute(_renew, {"ids": ids, "lease_until": now + lease})
            cancel = frozenset(row.id for row in kept if row.cancel_requested)
            return RenewalReport(lost=frozenset(held) - frozenset(ids), cancel=cancel)

        return await self._database.write(operation, durable=False)

    async def asked_to_stop(self, worker: str) -> frozenset[int]:
        query = sa.select(trials.c.id).where(IS_RUNNING, trials.c.worker == worker, trials.c.cancel_requested)
        return frozenset(await self._database.column(query))

    async def enter_phases(self, entries: Sequence[PhaseEntry]) -> None:
        if entries:
            await self._database.write(lambda connection: _enter_phases(connection, entries), durable=False)

    async def finish(self, trial_id: int, try_number: int, result: Result, now: datetime) -> Trial:
        event = Ended(try_number=try_number, outcome=result.outcome, cause=result.cause)
        return await self._close(trial_id, event, now, result)

    async def try_again(self, trial_id: int, try_number: int, result: Result, delay: timedelta, now: datetime) -> Trial:
        return await self._close(trial_id, TryAgain(try_number=try_number, delay=delay), now, result)

    async def lose_worker(self, worker: str, losses: Sequence[Loss], death: Death, now: datetime) -> list[Trial]:
        def operation(connection: Connection) -> list[Trial]:
            events = lose_all(connection, worker, losses, death, now)
            closings = [Closing(loss.trial_id, event, now, loss.result) for loss, event in events]
            return [trial for trial in close_tries(connection, closings) if isinstance(trial, Trial)]

        return await self._database.write(operation)

    async def give_back(self, trial_id: int, try_number: int, now: datetime) -> Trial:
        return await self._close(trial_id, GivenBack(try_number=try_number), now, None)

    async def any_due(self, now: datetime) -> bool:
        return bool((await self._database.column(_any_due, {"now": now}))[0])

    async def expired(self, now: datetime, limit: int = 100) -> list[Trial]:
        query = (
            sa.select(trials)
            .where(IS_RUNNING, trials.c.lease_until < now)
            .order_by(trials.c.lease_until, trials.c.id)
            .limit(limit)
        )
        return [trial_of(row) for row in await self._database.rows(query)]

    async def is_due_since(self, moment: datetime) -> bool:
        return bool(await self._database.rows(_due_since, {"moment": moment}))

    async def get(self, trial_id: int) -> TrialRow:
        rows = await self._database.rows(_by_id, {"id": trial_id})
        if not rows:
            raise _unknown(trial_id)
        return trial_row_of(rows[0])

    async def each(self, chosen: TrialFilter) -> AsyncGenerator[TrialRow]:
        query = _narrow(_with_result, chosen).order_by(trials.c.id).limit(_CHUNK)
        last = 0
        while rows := await self._database.rows(query.where(trials.c.id > last)):
            for row in rows:
                yield trial_row_of(row)
            if len(rows) < _CHUNK:
                return
            last = rows[-1]["id"]

    async def summaries(self, chosen: TrialFilter, page: Page) -> list[TrialSummary]:
        of_any_job = chosen if chosen.job_id is None else chosen.model_copy(update={"job_id": None})
        query = _page(of_any_job, of_job=chosen.job_id is not None, continued=page.before is not None)
        given = {"job": chosen.job_id, "before": page.before, "limit": page.limit, "skip": page.skip}
        return [summary_of(row) for row in await self._database.rows(query, given)]

    async def numbers(self, job_id: int) -> list[TrialNumbers]:
        def operation(connection: Connection) -> list[TrialNumbers]:
            return numbers_of(connection.execute(_numbers, {"job": job_id}))

        return await self._database.read(operation)

    async def failed(self, job_id: int) -> list[FailedRow]:
        def operation(connection: Connection) -> list[FailedRow]:
            return [failed_of(row) for row in connection.execute(_failed, {"job": job_id})]

        return await self._database.read(operation)

    async def running_by_worker(self) -> dict[str, int]:
        return {row["worker"]: row["trials"] for row in await self._database.rows(_running_by_worker)}

    async def tries(self, trial_id: int) -> list[Try]:
        rows = await self._database.rows(_tries_of, {"id": trial_id})
        if not rows:
            await self.get(trial_id)  # raises if the trial is unknown; an unclaimed one has no tries
        return [try_of(row) for row in rows]

    async def history(self, trial_id: int) -> TrialHistory:
        def operation(connection: Connection) -> TrialHistory:
            rows = values_of(connection.execute(_history, {"id": trial_id}))
            if not rows:
                raise _unknown(trial_id)
            trial = trial_of(rows[0])
            tries = tuple(try_of(row, _TRY) for row in rows if row[f"{_TRY}number"] is not None)
            spec = self._specs.read(connection, [trial.job_id]).get(trial.job_id)
            if spec is None:
                raise NotFound(f"There is no job {trial.job_id}.")  # it was deleted meanwhile
            return TrialHistory(trial=trial, agent=spec.agents[trial.agent_index], tries=tries)

        return await self._database.read(operation)

    async def _close(self, trial_id: int, event: TrialEvent, now: datetime, result: Result | None) -> Trial:
        return await self._closings.close(Closing(trial_id, event, now, result))


def _enter_phases(connection: Connection, entries: Sequence[PhaseEntry]) -> None:
    rows = connection.execute(_held, {"ids": sorted({entry.trial_id for entry in entries})})
    current = {row.id: row.attempt for row in rows}
    fresh = [entry for entry in entries if current.get(entry.trial_id) == entry.try_number]
    if not fresh:
        return
    latest = {entry.trial_id: entry.phase.value for entry in fresh}
    connection.execute(_enter, [{"trial": trial_id, "phase": phase} for trial_id, phase in latest.items()])
    facts = [event_log.phase_entered(e.job_id, e.trial_id, e.try_number, e.phase, e.step) for e in fresh]
    append_events(connection, facts, [entry.at for entry in fresh])


@lru_cache(maxsize=64)
def _page(chosen: TrialFilter, *, of_job: bool, continued: bool) -> sa.Select[Any]:
    """Cached, because building the statement takes as long as running it."""
    query = _narrow(sa.select(trials), chosen).order_by(trials.c.id.desc())
    if of_job:
        query = query.where(trials.c.job_id == sa.bindparam("job"))
    if continued:
        query = query.where(trials.c.id < sa.bindparam("before"))
    return query.limit(sa.bindparam("limit", type_=sa.Integer)).offset(sa.bindparam("skip", type_=sa.Integer))


def _narrow(query: sa.Select[Any], chosen: TrialFilter) -> sa.Select[Any]:
    if chosen.job_id is not None:
        query = query.where(trials.c.job_id == chosen.job_id)
    if chosen.after:
        query = query.where(trials.c.id > chosen.after)
    if chosen.states == (TrialState.RUNNING,):
        query = query.where(IS_RUNNING)  # a literal, so that the database uses the partial index
    elif chosen.states:
        query = query.where(trials.c.state.in_(chosen.states))
    if chosen.outcomes:
        query = query.where(IS_ENDED, trials.c.outcome.in_(chosen.outcomes))
    if chosen.causes:
        query = query.where(IS_ENDED, trials.c.cause.in_(chosen.causes))
    for column, value in (
        (trials.c.task_name, chosen.task),
        (trials.c.agent, chosen.agent),
        (trials.c.model, chosen.model),
    ):
        if value is not None:
            query = query.where(column == value)
    return narrow_triage(query, chosen)


def _unknown(trial_id: int) -> NotFound:
    return NotFound(f"There is no trial {trial_id}.")
