"""Attempts outside of a job's plan, and what all tries of a trial used together."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_SUMS = {
    "seconds": sa.Double,
    "input_tokens": sa.BigInteger,
    "cached_tokens": sa.BigInteger,
    "output_tokens": sa.BigInteger,
    "cost_usd": sa.Double,
}
_PAGE = 1000


def upgrade() -> None:
    op.add_column("trials", sa.Column("reruns", sa.BigInteger))
    for name, kind in _SUMS.items():
        op.add_column("trials", sa.Column(f"spent_{name}", kind))
    _fill_in(op.get_bind())


def _fill_in(connection: sa.Connection) -> None:
    """From the documents, because trials kept only the numbers of their last try, and no cached tokens."""
    tries = sa.table("attempts", sa.column("trial_id"), sa.column("number"), sa.column("result"))
    trials = sa.table("trials", sa.column("id"), *(sa.column(f"spent_{name}") for name in _SUMS))
    ids = sa.select(trials.c.id).order_by(trials.c.id).limit(_PAGE)
    last = 0
    while page := list(connection.execute(ids.where(trials.c.id > last)).scalars()):
        last = page[-1]
        spent: dict[int, dict[str, Any]] = {}
        found = sa.select(tries.c.trial_id, tries.c.result).where(
            tries.c.trial_id.between(page[0], last), tries.c.result.is_not(None)
        )
        for trial_id, document in connection.execute(found.order_by(tries.c.trial_id, tries.c.number)):
            _add(spent.setdefault(trial_id, {}), json.loads(document))
        if spent:
            rows = [{"was": trial_id} | {name: sums.get(name) for name in _SUMS} for trial_id, sums in spent.items()]
            values: dict[str, Any] = {f"spent_{name}": sa.bindparam(name) for name in _SUMS}
            connection.execute(sa.update(trials).where(trials.c.id == sa.bindparam("was")).values(values), rows)


def _add(sums: dict[str, Any], result: dict[str, Any]) -> None:
    used = {"seconds": result.get("seconds"), **(result.get("usage") or {})}
    for name in _SUMS:
        if used.get(name) is not None:
            sums[name] = (sums.get(name) or 0) + used[name]
