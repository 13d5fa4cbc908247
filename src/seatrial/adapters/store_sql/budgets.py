"""What was spent on models: one row for each trial, job and day, and one for each worker's slice of its cap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import batched, groupby

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database
from seatrial.adapters.store_sql.specs import IDS_AT_ONCE
from seatrial.adapters.store_sql.tables import budget_slices as slices
from seatrial.adapters.store_sql.tables import budgets, jobs
from seatrial.domain.model_calls import budget_slices
from seatrial.domain.model_calls.budget import WITHOUT_CAP, Amount, Scope, Spending
from seatrial.domain.model_calls.budget_slices import ScopeState, Slice, SliceGrant, SliceReport

_SLICE = TypeAdapter(Slice)
_names: sa.BindParameter[list[str]] = sa.bindparam("names", expanding=True)
_spent = sa.select(budgets).where(budgets.c.scope.in_(_names)).order_by(budgets.c.scope)
_slices = sa.select(slices).where(slices.c.scope.in_(_names)).order_by(slices.c.scope)
_jobs = (
    sa.select(jobs.c.id)
    .where(jobs.c.id.in_(sa.bindparam("ids", expanding=True)))
    .with_for_update(read=True, key_share=True)
)
"""A job cannot be deleted before its scope is there. Other changes of it do not wait."""
_forget = sa.delete(slices).where(slices.c.scope == sa.bindparam("name"), slices.c.holder == sa.bindparam("who"))
_count = sa.update(budgets).where(budgets.c.scope == sa.bindparam("name"))


class SqlBudgets:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def exchange(self, reports: Sequence[SliceReport], lease: timedelta, now: datetime) -> dict[str, SliceGrant]:
        if not reports:
            return {}
        # A slice of a cap that a power failure forgets would be given away twice. Without a cap nothing is given.
        durable = any(report.cap != WITHOUT_CAP for report in reports)
        return await self._database.write(
            lambda connection: _exchange(connection, reports, lease, now), durable=durable
        )

    async def spending(self, scopes: Sequence[Scope]) -> dict[str, Spending]:
        found = {scope.name: Spending() for scope in scopes}
        for names in batched(found, IDS_AT_ONCE):
            states = await self._database.read(partial(_states, names=names, query=_spent))
            found |= {
                name: Spending(state.spent, budget_slices.in_flight(state.slices)) for name, state in states.items()
            }
        return found


def _exchange(
    connection: Connection, reports: Sequence[SliceReport], lease: timedelta, now: datetime
) -> dict[str, SliceGrant]:
    """Locks the rows in the order of their names, as everybody does."""
    scopes = sorted({report.scope for report in reports}, key=lambda scope: scope.name)
    _open(connection, scopes)
    before = _states(connection, [scope.name for scope in scopes], _spent.with_for_update())
    after, grants = dict(before), {}
    for report in reports:
        if (state := after.get(report.scope.name)) is not None:
            after[report.scope.name], grants[report.holder] = budget_slices.exchange(state, report, lease, now)
    _save_spent(connection, before, after)
    _save_slices(connection, before, after)
    return grants


def _open(connection: Connection, scopes: Sequence[Scope]) -> None:
    """Adds scopes that are not there yet. Those of a job that was deleted stay away."""
    names = [scope.name for scope in scopes]
    known = set(connection.execute(sa.select(budgets.c.scope).where(budgets.c.scope.in_(names))).scalars())
    new = [scope for scope in scopes if scope.name not in known]
    ids = {scope.job_id for scope in new if scope.job_id is not None}
    there = set(connection.execute(_jobs, {"ids": sorted(ids)}).scalars()) if ids else set()
    rows = [
        {"scope": scope.name, "job_id": scope.job_id, "nanodollars": 0, "tokens": 0, "calls": 0}
        for scope in new
        if scope.job_id is None or scope.job_id in there
    ]
    if rows:
        connection.execute(_insert(connection, budgets).on_conflict_do_nothing(), rows)


def _states(
    connection: Connection, names: Sequence[str], query: sa.Select[tuple[object, ...]]
) -> dict[str, ScopeState]:
    rows = connection.execute(query, {"names": list(names)}).all()
    held = groupby(connection.execute(_slices, {"names": list(names)}), key=lambda row: row.scope)
    by_scope = {scope: tuple(_SLICE.validate_json(row.state) for row in of_scope) for scope, of_scope in held}
    return {
        row.scope: ScopeState(Amount(row.nanodollars, row.tokens, row.calls), by_scope.get(row.scope, ()))
        for row in rows
    }


def _save_spent(connection: Connection, before: dict[str, ScopeState], after: dict[str, ScopeState]) -> None:
    changed = [
        {"name": name, "nanodollars": spent.nanodollars, "tokens": spent.tokens, "calls": spent.calls}
        for name, spent in ((name, state.spent) for name, state in after.items())
        if spent != before[name].spent
    ]
    if changed:
        connection.execute(_count, changed)


def _save_slices(connection: Connection, before: dict[str, ScopeState], after: dict[str, ScopeState]) -> None:
    rows = [
        {"scope": name, "holder": each.holder, "state": _SLICE.dump_json(each).decode()}
        for name, state in after.items()
        for each in _changed(before[name].slices, state.slices)
    ]
    if rows:
        insert = _insert(connection, slices)
        saved = {"state": insert.excluded.state}
        connection.execute(insert.on_conflict_do_update(index_elements=["scope", "holder"], set_=saved), rows)
    gone = [
        {"name": name, "who": each.holder}
        for name, state in after.items()
        for each in before[name].slices
        if all(each.holder != kept.holder for kept in state.slices)
    ]
    if gone:
        connection.execute(_forget, gone)


def _changed(before: Iterable[Slice], after: Iterable[Slice]) -> list[Slice]:
    known = set(before)
    return [each for each in after if each not in known]


def _insert(connection: Connection, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)
