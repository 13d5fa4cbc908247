"""Creates, reads, cancels, retries and deletes jobs. A job's numbers are counted from its trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import batched
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.change import end_job_if_done
from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.events import append_events
from seatrial.adapters.store_sql.job_changes import (
    add_attempts,
    cancel_job,
    cancel_trials,
    delete_job,
    drop_trials,
    job_version,
    new_trial,
    record_version,
    release_trials,
    retry_trials,
    unknown_job,
)
from seatrial.adapters.store_sql.job_filter import narrow_jobs
from seatrial.adapters.store_sql.rows import Values, job_of, values_of
from seatrial.adapters.store_sql.specs import IDS_AT_ONCE, JobSpecs, document_of
from seatrial.adapters.store_sql.tables import creations, jobs, needs, trials
from seatrial.adapters.store_sql.tasks import insert_into
from seatrial.adapters.store_sql.work_left import work_left
from seatrial.domain import event_log
from seatrial.domain.job import Job, JobCounts, JobSpec, StateCounts
from seatrial.domain.reports.progress import WorkLeft
from seatrial.domain.trial import Mark, NewTrial, Released, TrialState
from seatrial.errors import Conflict
from seatrial.ports.store import (
    ConfigurationTotals,
    JobFilter,
    JobNumbers,
    JobTotals,
    Once,
    Page,
    SpentTally,
    Tally,
)

_CREATING = 0x5EA7_0004
"""Advisory lock in PostgreSQL, one for each idempotency key."""

# Built once, because building these frequent statements takes longer than running them.
_standing_alone = sa.select(
    jobs.c.id, jobs.c.created_at, jobs.c.cancelled_at, jobs.c.ended_at, jobs.c.renamed, jobs.c.pinned_at
)
_standing_by_id = _standing_alone.where(jobs.c.id == sa.bindparam("id"))
_by_id = sa.select(jobs).where(jobs.c.id == sa.bindparam("id"))
_among = trials.c.job_id.in_(sa.bindparam("job_ids", expanding=True))
_is_added = trials.c.reruns.is_not(None).label("added")
_standings = (trials.c.job_id, trials.c.state, trials.c.outcome, _is_added)
_counts = sa.select(*_standings, sa.func.count().label("trials")).where(_among).group_by(*_standings)
_sums = (
    sa.select(
        *_standings,
        sa.func.count().label("trials"),
        sa.func.coalesce(sa.func.sum(trials.c.spent_seconds), 0.0).label("seconds"),
        sa.func.coalesce(sa.func.sum(trials.c.spent_input_tokens), 0).label("input_tokens"),
        sa.func.coalesce(sa.func.sum(trials.c.spent_output_tokens), 0).label("output_tokens"),
        sa.func.sum(trials.c.spent_cost_usd).label("cost_usd"),
        sa.func.min(trials.c.started_at).label("started_at"),
    )
    .where(_among)
    .group_by(*_standings)
)
_ways = (trials.c.job_id, trials.c.task_digest.label("digest"), trials.c.agent_index, trials.c.outcome, trials.c.cause)
_tallies = (
    sa.select(*_ways, sa.func.count().label("trials"))
    .where(_among, trials.c.reruns.is_(None))
    .group_by(*_ways)
    .order_by(*_ways)
)
_tokens_in, _tokens_out = trials.c.spent_input_tokens, trials.c.spent_output_tokens
_spent_tallies = _tallies.add_columns(
    sa.func.count(trials.c.seconds).label("timed"),
    sa.func.coalesce(sa.func.sum(trials.c.seconds), 0.0).label("seconds"),
    sa.func.count(sa.func.coalesce(_tokens_in, _tokens_out)).label("metered"),
    sa.func.coalesce(sa.func.sum(_tokens_in), 0).label("tokens_in"),
    sa.func.coalesce(sa.func.sum(_tokens_out), 0).label("tokens_out"),
    sa.func.count(trials.c.spent_cost_usd).label("priced"),
    sa.func.coalesce(sa.func.sum(trials.c.spent_cost_usd), 0.0).label("cost_usd"),
)
_planned = trials.c.reruns.is_(None)
_unlimited = sa.and_(
    _planned, trials.c.state == TrialState.ENDED, trials.c.marks.contains(Mark.LIMITS_NOT_ENFORCED, autoescape=True)
)
_configurations = (
    sa.select(
        trials.c.job_id,
        trials.c.agent_index,
        sa.func.sum(sa.case((_planned, trials.c.spent_cost_usd))).label("cost_usd"),
        sa.func.count(sa.case((_planned, trials.c.spent_cost_usd))).label("priced"),
        sa.func.count(sa.case((_unlimited, 1))).label("unlimited"),
        sa.func.count(trials.c.reruns).label("added"),
    )
    .where(_among)
    .group_by(trials.c.job_id, trials.c.agent_index)
    .order_by(trials.c.job_id, trials.c.agent_index)
)


class SqlJobs:
    def __init__(self, database: Database, specs: JobSpecs) -> None:
        self._database = database
        self._specs = specs

    async def create(
        self,
        spec: JobSpec,
        trials: Sequence[NewTrial],
        now: datetime,
        *,
        hold: bool = False,
        keys: str | None = None,
        once: Once | None = None,
    ) -> Job:
        new = _Creation(spec, trials, now, TrialState.HELD if hold else TrialState.QUEUED, keys)

        def operation(connection: Connection) -> Job:
            return _create(connection, new) if once is None else _create_once(connection, new, once)

        return await self._database.write(operation)

    async def get(self, job_id: int) -> Job:
        spec = self._specs.recall(job_id)
        query = _by_id if spec is None else _standing_by_id
        rows = await self._database.rows(query, {"id": job_id})
        if not rows:
            raise unknown_job(job_id)
        return job_of(rows[0], spec or self._specs.learn(job_id, rows[0]["spec"]))

    async def page(self, page: Page, chosen: JobFilter | None = None) -> list[Job]:
        query = _page(chosen or JobFilter(), page.before is not None)
        given = {"limit": page.limit, "skip": page.skip, "before": page.before}

        def operation(connection: Connection) -> list[Job]:
            rows = values_of(connection.execute(query, given))
            specs = self._specs.read(connection, [row["id"] for row in rows])
            return [job_of(row, specs[row["id"]]) for row in rows if row["id"] in specs]

        return await self._database.read(operation)

    async def count(self, chosen: JobFilter) -> int:
        query = narrow_jobs(sa.select(sa.func.count()).select_from(jobs), chosen)
        return int(await self._database.value(query))

    async def counts(self, job_ids: Sequence[int]) -> dict[int, JobCounts]:
        return {job_id: _counted(rows) for job_id, rows in (await self._by_job(_counts, job_ids)).items()}

    async def numbers(self, job_ids: Sequence[int]) -> dict[int, JobNumbers]:
        return {job_id: _numbers(rows) for job_id, rows in (await self._by_job(_sums, job_ids)).items()}

    async def tallies(self, job_ids: Sequence[int]) -> dict[int, list[Tally]]:
        found = await self._by_job(_tallies, job_ids)
        return {job_id: [_tally(row) for row in rows] for job_id, rows in found.items()}

    async def spent_tallies(self, job_ids: Sequence[int]) -> dict[int, list[SpentTally]]:
        found = await self._by_job(_spent_tallies, job_ids)
        return {job_id: [_spent_tally(row) for row in rows] for job_id, rows in found.items()}

    async def configuration_totals(self, job_ids: Sequence[int]) -> dict[int, list[ConfigurationTotals]]:
        found = await self._by_job(_configurations, job_ids)
        return {job_id: [_totals(row) for row in rows] for job_id, rows in found.items()}

    async def work_left(self, job_id: int, since: datetime) -> WorkLeft:
        return await self._database.read(lambda connection: work_left(connection, job_id, since))

    async def save_sealed_keys(self, job_id: int, keys: str) -> None:
        open_job = sa.update(jobs).where(jobs.c.id == job_id, jobs.c.ended_at.is_(None)).values(sealed_keys=keys)
        if not await self._database.change(open_job):
            await self.get(job_id)
            raise Conflict(f"Job {job_id} has ended.", fix="Retry its trials first.")

    async def sealed_keys(self, job_id: int) -> str | None:
        query = sa.select(jobs.c.sealed_keys).where(jobs.c.id == job_id)
        keys: str | None = await self._database.value(query)
        return keys

    async def record_version(self, job_id: int, name: str, version: str) -> str:
        known = await self._database.column(job_version, {"job_id": job_id, "name": name})
        if known or not version:
            return str(known[0]) if known else ""
        return await self._database.write(lambda connection: record_version(connection, job_id, name, version))

    async def cancel(self, job_id: int, now: datetime) -> int:
        return await self._database.write(lambda connection: cancel_job(connection, job_id, now))

    async def cancel_trials(self, trial_ids: Sequence[int], now: datetime) -> int:
        return await self._database.write(lambda connection: cancel_trials(connection, sorted(set(trial_ids)), now))

    async def release_trials(self, trial_ids: Sequence[int], now: datetime, *, limit_sec: float | None = None) -> int:
        released = Released(limit_sec=limit_sec)
        return await self._database.write(
            lambda connection: release_trials(connection, sorted(set(trial_ids)), released, now)
        )

    async def drop_trials(self, job_id: int, trial_ids: Sequence[int], now: datetime) -> int:
        return await self._database.write(
            lambda connection: drop_trials(connection, job_id, sorted(set(trial_ids)), now)
        )

    async def retry_trials(self, trial_ids: Sequence[int], now: datetime, *, hold: bool = False) -> int:
        return await self._database.write(
            lambda connection: retry_trials(connection, sorted(set(trial_ids)), now, hold)
        )

    async def add_attempts(self, trial_ids: Sequence[int], now: datetime, *, hold: bool = False) -> list[int]:
        return await self._database.write(lambda connection: add_attempts(connection, trial_ids, now, hold))

    async def delete(self, job_id: int) -> None:
        await self._database.write(lambda connection: delete_job(connection, job_id))

    async def _by_job(self, query: sa.Select[Any], job_ids: Sequence[int]) -> dict[int, list[Values]]:
        """The rows of each job; every id has an entry."""
        found: dict[int, list[Values]] = {job_id: [] for job_id in job_ids}
        for ids in batched(found, IDS_AT_ONCE):
            for row in await self._database.rows(query, {"job_ids": ids}):
                found[row["job_id"]].append(row)
        return found


@dataclass(frozen=True, slots=True)
class _Creation:
    spec: JobSpec
    trials: Sequence[NewTrial]
    now: datetime
    state: TrialState
    keys: str | None


def _create_once(connection: Connection, new: _Creation, once: Once) -> Job:
    """SQLite has one writer. On PostgreSQL a lock orders concurrent requests with the same key."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATING, sa.func.hashtext(once.key))))
    known = connection.execute(sa.select(creations).where(creations.c.key == once.key)).first()
    if known is None:
        job = _create(connection, new)
        values = {"key": once.key, "fingerprint": once.fingerprint, "job_id": job.id, "created_at": new.now}
        connection.execute(sa.insert(creations).values(values))
        return job
    if known.fingerprint != once.fingerprint:
        raise Conflict("This idempotency key was used for another request.", fix="Make a new key for a new request.")
    (row,) = values_of(connection.execute(_by_id, {"id": known.job_id}))
    return job_of(row, JobSpec.model_validate_json(row["spec"]))


def _create(connection: Connection, new: _Creation) -> Job:
    spec, planned, now = new.spec, new.trials, new.now
    values = {
        "spec": document_of(spec),
        "name": spec.name,
        "origin": spec.origin,
        "dataset": spec.dataset,
        "concurrency": spec.concurrency,
        "created_at": now,
        "sealed_keys": new.keys,
    }
    job_id = connection.execute(sa.insert(jobs).values(values).returning(jobs.c.id)).scalar_one()
    if planned:
        _note_needs(connection, planned)
        connection.execute(sa.insert(trials), [new_trial(job_id, trial, new.state, now) for trial in planned])
    facts = [event_log.job_created(Job(id=job_id, spec=spec, created_at=now), len(planned))]
    if not planned:
        facts += end_job_if_done(connection, job_id, now)
    append_events(connection, facts, now)
    return Job(id=job_id, spec=spec, created_at=now, ended_at=None if planned else now)


def _note_needs(connection: Connection, planned: Sequence[NewTrial]) -> None:
    """Before the trials, so that a claim that sees them knows their needs."""
    texts = [{"text": text} for text in sorted({trial.needs.text for trial in planned})]
    connection.execute(insert_into(connection, needs).on_conflict_do_nothing(), texts)


@lru_cache(maxsize=64)
def _page(chosen: JobFilter, continued: bool) -> sa.Select[Any]:
    query = narrow_jobs(_standing_alone, chosen).order_by(jobs.c.id.desc())
    if continued:
        query = query.where(jobs.c.id < sa.bindparam("before"))
    return query.limit(sa.bindparam("limit", type_=sa.Integer)).offset(sa.bindparam("skip", type_=sa.Integer))


def _numbers(rows: Sequence[Values]) -> JobNumbers:
    costs = [row["cost_usd"] for row in rows if row["cost_usd"] is not None]
    starts = [row["started_at"] for row in rows if row["started_at"] is not None]
    return JobNumbers(
        counts=_counted(rows),
        totals=JobTotals(
            seconds=sum(row["seconds"] for row in rows),
            input_tokens=sum(row["input_tokens"] for row in rows),
            output_tokens=sum(row["output_tokens"] for row in rows),
            cost_usd=sum(costs) if costs else None,
            started_at=min(starts, default=None),
        ),
    )


def _counted(rows: Sequence[Values]) -> JobCounts:
    planned = {_standing(row): row["trials"] for row in rows if not row["added"]}
    added = {_standing(row): row["trials"] for row in rows if row["added"]}
    return JobCounts(**planned, added=StateCounts(**added)) if added else JobCounts(**planned)


def _tally(row: Values) -> Tally:
    return Tally(**{name: value for name, value in row.items() if name != "job_id"})


def _spent_tally(row: Values) -> SpentTally:
    tokens = int(row.pop("tokens_in")) + int(row.pop("tokens_out"))  # PostgreSQL adds them up to a decimal number
    return SpentTally(**{name: value for name, value in row.items() if name != "job_id"}, tokens=tokens)


def _totals(row: Values) -> ConfigurationTotals:
    return ConfigurationTotals(**{name: value for name, value in row.items() if name != "job_id"})


def _standing(row: Values) -> str:
    """The state of a trial or, once it has ended, its outcome: the names of the fields of ``JobCounts``."""
    return str(row["outcome"] if row["state"] == TrialState.ENDED else row["state"])
