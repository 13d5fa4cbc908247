"""For the service: searchable names and origins of jobs, sealed keys, tokens, live output, idempotency keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("jobs", sa.Column("name", sa.Text, nullable=False, server_default=""))
    op.add_column("jobs", sa.Column("origin", sa.Text, nullable=False, server_default="seatrial"))
    op.add_column("jobs", sa.Column("dataset", sa.Text))
    op.add_column("jobs", sa.Column("sealed_keys", sa.Text))
    _fill_from_specs()
    op.create_index("ix_jobs_origin", "jobs", ["origin", "id"])
    ended = sa.text("state = 'ended'")
    op.create_index("ix_trials_ended_at", "trials", ["ended_at"], sqlite_where=ended, postgresql_where=ended)
    _make_output()
    _make_tokens_and_keys()


def _fill_from_specs() -> None:
    """Older jobs have their name and dataset only in the spec."""
    extract = (
        "json_extract(spec, '$.{0}')" if op.get_bind().dialect.name == "sqlite" else "CAST(spec AS json) ->> '{0}'"
    )
    op.execute(f"UPDATE jobs SET name = COALESCE({extract.format('name')}, ''), dataset = {extract.format('dataset')}")  # noqa: S608


def _make_output() -> None:
    op.create_table(
        "output",
        sa.Column("seq", _ID, sa.Identity(), nullable=False),
        sa.Column("trial_id", _ID, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("stream", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_output"),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], name="fk_output_trial_id", ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_output_trial", "output", ["trial_id", "seq"])


def _make_tokens_and_keys() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", _ID, sa.Identity(), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME),
        sa.Column("revoked_at", _TIME),
        sa.Column("used_at", _TIME),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("fingerprint", name="uq_tokens_fingerprint"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "provider_keys",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("set_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_provider_keys"),
    )
    op.create_table(
        "creations",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("job_id", _ID, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_creations"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_creations_job_id", ondelete="CASCADE"),
    )
