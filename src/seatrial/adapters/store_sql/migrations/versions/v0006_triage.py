"""Notes, tags, labels and reviewed marks of trials, names and pins of jobs, saved views, read-only links."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    for name, kind in (("renamed", sa.Text), ("renamed_by", sa.Text), ("renamed_at", _TIME)):
        op.add_column("jobs", sa.Column(name, kind))
    for name, kind in (("pinned_by", sa.Text), ("pinned_at", _TIME)):
        op.add_column("jobs", sa.Column(name, kind))
    op.create_index(
        "ix_jobs_pinned",
        "jobs",
        ["id"],
        sqlite_where=sa.text("pinned_at IS NOT NULL"),
        postgresql_where=sa.text("pinned_at IS NOT NULL"),
    )
    _trial_tables()
    _other_tables()


def _trial_tables() -> None:
    op.create_table(
        "trial_marks",
        sa.Column("trial_id", _ID, nullable=False, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], ondelete="CASCADE", name="fk_trial_marks_trial_id"),
        sa.PrimaryKeyConstraint("trial_id", "kind", "name", name="pk_trial_marks"),
    )
    op.create_table(
        "trial_notes",
        sa.Column("id", _ID, sa.Identity(), nullable=False),
        sa.Column("trial_id", _ID, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], ondelete="CASCADE", name="fk_trial_notes_trial_id"),
        sa.PrimaryKeyConstraint("id", name="pk_trial_notes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_trial_notes_trial", "trial_notes", ["trial_id", "id"])


def _other_tables() -> None:
    op.create_table(
        "saved_views",
        sa.Column("id", _ID, sa.Identity(), nullable=False),
        sa.Column("page", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_saved_views"),
        sa.UniqueConstraint("page", "name", name="uq_saved_views_page_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "links",
        sa.Column("id", _ID, sa.Identity(), nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("job_id", _ID, nullable=False),
        sa.Column("trial_id", _ID),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("token_id", _ID),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.Column("revoked_at", _TIME),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE", name="fk_links_job_id"),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], ondelete="CASCADE", name="fk_links_trial_id"),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], ondelete="CASCADE", name="fk_links_token_id"),
        sa.PrimaryKeyConstraint("id", name="pk_links"),
        sa.UniqueConstraint("fingerprint", name="uq_links_fingerprint"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_links_job", "links", ["job_id"])
