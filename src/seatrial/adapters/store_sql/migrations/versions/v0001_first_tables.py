"""The first tables.

A migration describes the tables of its time, so it does not use ``tables.py``. A test checks that all migrations
together produce the tables of that module.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    _make_meta_tasks_workers()
    _make_jobs()
    _make_trials()
    _make_attempts_and_events()


def _make_meta_tasks_workers() -> None:
    op.create_table(
        "meta",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_meta"),
    )
    op.create_table(
        "tasks",
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("saved_at", _TIME, nullable=False),
        sa.Column("used_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_tasks"),
    )
    op.create_index("ix_tasks_name", "tasks", ["name"])
    op.create_table(
        "datasets",
        sa.Column("id", _ID, sa.Identity(), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_datasets"),
        sa.UniqueConstraint("name", "version", name="uq_datasets_name_version"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "workers",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("seen_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_workers"),
    )


def _make_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", _ID, sa.Identity(), nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("concurrency", sa.Integer),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("cancelled_at", _TIME),
        sa.Column("ended_at", _TIME),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sqlite_autoincrement=True,
    )
    _partial_index("ix_jobs_open", "jobs", ["id"], "ended_at IS NULL")


def _make_trials() -> None:
    op.create_table(
        "trials",
        sa.Column("id", _ID, sa.Identity(), nullable=False),
        sa.Column("job_id", _ID, nullable=False),
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
        sa.Column("worker", sa.Text),
        sa.Column("lease_until", _TIME),
        sa.Column("not_before", _TIME),
        sa.Column("phase", sa.Text),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("started_at", _TIME),
        sa.Column("ended_at", _TIME),
        sa.Column("result_attempt", sa.Integer),
        sa.Column("reward", sa.Double),
        sa.Column("marks", sa.Text),
        sa.Column("seconds", sa.Double),
        sa.Column("input_tokens", sa.BigInteger),
        sa.Column("output_tokens", sa.BigInteger),
        sa.Column("cost_usd", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_trials"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_trials_job_id", ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_trials_job", "trials", ["job_id", "id"])
    op.create_index("ix_trials_job_state", "trials", ["job_id", "state", "outcome"])
    op.create_index("ix_trials_task", "trials", ["task_name", "id"])
    _partial_index("ix_trials_queued", "trials", ["job_id", "id", "not_before"], "state = 'queued'")
    _partial_index("ix_trials_running", "trials", ["id"], "state = 'running'")
    _partial_index("ix_trials_outcome", "trials", ["outcome", "id"], "state = 'ended'")


def _make_attempts_and_events() -> None:
    op.create_table(
        "attempts",
        sa.Column("trial_id", _ID, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("worker", sa.Text),
        sa.Column("started_at", _TIME, nullable=False),
        sa.Column("ended_at", _TIME),
        sa.Column("result", sa.Text),
        sa.PrimaryKeyConstraint("trial_id", "number", name="pk_attempts"),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], name="fk_attempts_trial_id", ondelete="CASCADE"),
    )
    op.create_table(
        "events",
        sa.Column("seq", _ID, sa.Identity(), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("job_id", _ID, nullable=False),
        sa.Column("trial_id", _ID),
        sa.Column("attempt", sa.Integer),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_events"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_events_job_id", ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_job", "events", ["job_id", "seq"])
    _partial_index("ix_events_trial", "events", ["trial_id", "seq"], "trial_id IS NOT NULL")


def _partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    condition: Any = sa.text(where)
    op.create_index(name, table, columns, sqlite_where=condition, postgresql_where=condition)
