"""The tables of the store. A test compares them with the migrations.

Documents (specs, results, …) are JSON in text columns: the domain validates them, the database never searches them, and
they may contain ``\\u0000``, which PostgreSQL's JSON type refuses. Values that are searched or counted have columns.

Statements that run once per trial use a *partial* index on the state, so that ended trials do not slow down a claim.
Databases use such an index only if the state is a literal in the SQL: see ``IS_QUEUED`` and ``IS_RUNNING``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator


class Moment(TypeDecorator[datetime]):
    """An aware time, stored in UTC. SQLite has no time zones, so they are removed and added again."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("the store takes aware times only")
        return value.astimezone(UTC)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """At most one call per value. SQLAlchemy's default makes three, and a page has hundreds of values."""
        return _moment_of_text if dialect.name == "sqlite" else None


def _moment_of_text(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(f"{text}+00:00")


# SQLite assigns ids only in a column that is exactly INTEGER.
_Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _partial(name: str, *columns: str, where: str) -> sa.Index:
    condition = sa.text(where)
    return sa.Index(name, *columns, sqlite_where=condition, postgresql_where=condition)


def _counted(name: str) -> sa.Column[Any]:
    """An id that is never used twice, not even after its row was deleted, because blob keys contain ids."""
    return sa.Column(name, _Id, sa.Identity(), primary_key=True)


meta = sa.Table(
    "meta",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, index=True),
    sa.Column("document", sa.Text, nullable=False),
    sa.Column("saved_at", Moment, nullable=False),
    sa.Column("used_at", Moment, nullable=False),
)

datasets = sa.Table(
    "datasets",
    metadata,
    _counted("id"),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
    sa.UniqueConstraint("name", "version"),
    sqlite_autoincrement=True,
)

jobs = sa.Table(
    "jobs",
    metadata,
    _counted("id"),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False, server_default=""),
    sa.Column("origin", sa.Text, nullable=False, server_default="seatrial"),
    sa.Column("dataset", sa.Text),
    sa.Column("concurrency", sa.Integer),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("cancelled_at", Moment),
    sa.Column("ended_at", Moment),
    sa.Column("sealed_keys", sa.Text),
    sa.Column("renamed", sa.Text),
    sa.Column("renamed_by", sa.Text),
    sa.Column("renamed_at", Moment),
    sa.Column("pinned_by", sa.Text),
    sa.Column("pinned_at", Moment),
    sa.Index("ix_jobs_origin", "origin", "id"),
    _partial("ix_jobs_open", "id", where="ended_at IS NULL"),
    _partial("ix_jobs_pinned", "id", where="pinned_at IS NOT NULL"),
    sqlite_autoincrement=True,
)

job_versions = sa.Table(
    "job_versions",
    metadata,
    sa.Column("job_id", _Id, sa.ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("job_id", "name"),
)

trials = sa.Table(
    "trials",
    metadata,
    _counted("id"),
    sa.Column("job_id", _Id, sa.ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    sa.Column("task_name", sa.Text, nullable=False),
    sa.Column("task_digest", sa.Text, nullable=False),
    sa.Column("agent_index", sa.Integer, nullable=False),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("model", sa.Text),
    sa.Column("repeat", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text),
    sa.Column("cause", sa.Text),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("attempts_base", sa.Integer, nullable=False),
    sa.Column("shared_losses", sa.Integer, nullable=False, server_default="0"),
    sa.Column("worker", sa.Text),
    sa.Column("lease_until", Moment),
    sa.Column("not_before", Moment),
    sa.Column("phase", sa.Text),
    sa.Column("cancel_requested", sa.Boolean, nullable=False),
    sa.Column("limit_sec", sa.Double),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("started_at", Moment),
    sa.Column("ended_at", Moment),
    # From the last try with a result, so that listings read no documents.
    sa.Column("result_attempt", sa.Integer),
    sa.Column("reward", sa.Double),
    sa.Column("marks", sa.Text),
    sa.Column("seconds", sa.Double),
    sa.Column("input_tokens", sa.BigInteger),
    sa.Column("output_tokens", sa.BigInteger),
    sa.Column("cost_usd", sa.Double),
    # What all tries used together.
    sa.Column("spent_seconds", sa.Double),
    sa.Column("spent_input_tokens", sa.BigInteger),
    sa.Column("spent_cached_tokens", sa.BigInteger),
    sa.Column("spent_output_tokens", sa.BigInteger),
    sa.Column("spent_cost_usd", sa.Double),
    sa.Column("reruns", sa.BigInteger),
    sa.Column("outside_losses", sa.Integer, nullable=False, server_default="0"),
    sa.Column("search_group", sa.Text),
    # What its last result says that it suffered.
    sa.Column("throttled_sec", sa.Double),
    sa.Column("memory_pressure", sa.BigInteger),
    sa.Column("model_wait_sec", sa.Double),
    sa.Column("pace_wait_sec", sa.Double),
    # What it needs of a worker: a text of ``domain/fleet/needs.py``, empty if nothing special.
    sa.Column("needs", sa.Text, nullable=False, server_default=""),
    sa.Index("ix_trials_job", "job_id", "id"),
    sa.Index("ix_trials_job_state", "job_id", "state", "outcome"),
    sa.Index("ix_trials_task", "task_name", "id"),
    _partial("ix_trials_queued", "job_id", "id", "not_before", where="state = 'queued'"),
    _partial("ix_trials_needs", "job_id", "needs", "id", where="state = 'queued'"),
    # Without lease_until: a renewal that changes no index is the cheapest, and few trials run at once.
    _partial("ix_trials_running", "id", where="state = 'running'"),
    _partial("ix_trials_open", "job_id", "task_digest", where="state IN ('queued', 'running')"),
    _partial("ix_trials_suspected", "id", where="shared_losses >= 2 AND state <> 'ended'"),
    _partial("ix_trials_outcome", "outcome", "id", where="state = 'ended'"),
    _partial("ix_trials_ended_at", "ended_at", where="state = 'ended'"),
    sqlite_autoincrement=True,
)

needs = sa.Table(
    "needs",
    metadata,
    # Every text of ``trials.needs``. There are few, so that a claim can judge each of them.
    sa.Column("text", sa.Text, primary_key=True),
)

waits = sa.Table(
    "waits_for_room",
    metadata,
    # The first trials in line that workers passed over, because they had no room for them.
    sa.Column("trial_id", _Id, sa.ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    sa.Column("since", Moment, nullable=False),
    sa.Column("worker", sa.Text),
    sa.Column("until", Moment),
)

tries = sa.Table(
    "attempts",
    metadata,
    sa.Column("trial_id", _Id, sa.ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("worker", sa.Text),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("ended_at", Moment),
    sa.Column("result", sa.Text),
)

events = sa.Table(
    "events",
    metadata,
    _counted("seq"),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("job_id", _Id, sa.ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    sa.Column("trial_id", _Id),
    sa.Column("attempt", sa.Integer),
    sa.Column("at", Moment, nullable=False),
    sa.Column("data", sa.Text, nullable=False),
    sa.Index("ix_events_job", "job_id", "seq"),
    _partial("ix_events_trial", "trial_id", "seq", where="trial_id IS NOT NULL"),
    sqlite_autoincrement=True,
)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("document", sa.Text, nullable=False),
    sa.Column("seen_at", Moment, nullable=False),
    sa.Column("leaving_at", Moment),
)

duty_leases = sa.Table(
    "duty_leases",
    metadata,
    sa.Column("duty", sa.Text, primary_key=True),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("until", Moment, nullable=False),
)

output = sa.Table(
    "output",
    metadata,
    _counted("seq"),
    sa.Column("trial_id", _Id, sa.ForeignKey("trials.id", ondelete="CASCADE"), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("stream", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("at", Moment, nullable=False),
    sa.Index("ix_output_trial", "trial_id", "seq"),
    sqlite_autoincrement=True,
)

tokens = sa.Table(
    "tokens",
    metadata,
    _counted("id"),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("expires_at", Moment),
    sa.Column("revoked_at", Moment),
    sa.Column("used_at", Moment),
    sqlite_autoincrement=True,
)

provider_keys = sa.Table(
    "provider_keys",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("sealed", sa.Text, nullable=False),
    sa.Column("set_at", Moment, nullable=False),
)

creations = sa.Table(
    "creations",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("job_id", _Id, sa.ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    sa.Column("created_at", Moment, nullable=False),
)

trial_marks = sa.Table(
    "trial_marks",
    metadata,
    sa.Column("trial_id", _Id, sa.ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("author", sa.Text, nullable=False),
    sa.Column("at", Moment, nullable=False),
)

trial_notes = sa.Table(
    "trial_notes",
    metadata,
    _counted("id"),
    sa.Column("trial_id", _Id, sa.ForeignKey("trials.id", ondelete="CASCADE"), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("author", sa.Text, nullable=False),
    sa.Column("at", Moment, nullable=False),
    sa.Index("ix_trial_notes_trial", "trial_id", "id"),
    sqlite_autoincrement=True,
)

saved_views = sa.Table(
    "saved_views",
    metadata,
    _counted("id"),
    sa.Column("page", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("query", sa.Text, nullable=False),
    sa.Column("author", sa.Text, nullable=False),
    sa.Column("at", Moment, nullable=False),
    sa.UniqueConstraint("page", "name"),
    sqlite_autoincrement=True,
)

links = sa.Table(
    "links",
    metadata,
    _counted("id"),
    sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
    sa.Column("job_id", _Id, sa.ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    sa.Column("trial_id", _Id, sa.ForeignKey("trials.id", ondelete="CASCADE")),
    sa.Column("author", sa.Text, nullable=False),
    sa.Column("token_id", _Id, sa.ForeignKey("tokens.id", ondelete="CASCADE")),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("expires_at", Moment, nullable=False),
    sa.Column("revoked_at", Moment),
    sa.Index("ix_links_job", "job_id"),
    sqlite_autoincrement=True,
)

paces = sa.Table(
    "paces",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("changed_at", Moment, nullable=False),
)

pace_shares = sa.Table(
    "pace_shares",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("worker", sa.Text, primary_key=True),
    sa.Column("slots", sa.Integer, nullable=False),
    sa.Column("in_flight", sa.Integer, nullable=False),
    sa.Column("waiting", sa.Integer, nullable=False),
    sa.Column("served_at", Moment, nullable=False),
    sa.Column("expires_at", Moment, nullable=False),
)

budgets = sa.Table(
    "budgets",
    metadata,
    # A name of ``domain/model_calls/budget.py``: a trial, a job or a day.
    sa.Column("scope", sa.Text, primary_key=True),
    sa.Column("job_id", _Id, sa.ForeignKey("jobs.id", ondelete="CASCADE")),
    # What was spent.
    sa.Column("nanodollars", sa.BigInteger, nullable=False),
    sa.Column("tokens", sa.BigInteger, nullable=False),
    sa.Column("calls", sa.BigInteger, nullable=False),
    sa.Index("ix_budgets_job_id", "job_id"),
)

budget_slices = sa.Table(
    "budget_slices",
    metadata,
    sa.Column("scope", sa.Text, sa.ForeignKey("budgets.scope", ondelete="CASCADE"), primary_key=True),
    sa.Column("holder", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
)

IS_HELD = trials.c.state == sa.literal_column("'held'")
IS_QUEUED = trials.c.state == sa.literal_column("'queued'")
IS_RUNNING = trials.c.state == sa.literal_column("'running'")
IS_OPEN = trials.c.state.in_([sa.literal_column("'queued'"), sa.literal_column("'running'")])
IS_ENDED = trials.c.state == sa.literal_column("'ended'")
IS_UNGRADED = trials.c.outcome.in_(["error", "cancelled"])
"""Of an ended trial: it may be retried."""
IS_SUSPECTED = sa.and_(trials.c.shared_losses >= sa.literal_column("2"), trials.c.state != sa.literal_column("'ended'"))
