"""What was spent on models by trial, job and day, and the slices of caps that workers hold."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "budgets",
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("job_id", _ID),
        sa.Column("nanodollars", sa.BigInteger, nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("calls", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE", name="fk_budgets_job_id"),
        sa.PrimaryKeyConstraint("scope", name="pk_budgets"),
    )
    op.create_index("ix_budgets_job_id", "budgets", ["job_id"])
    op.create_table(
        "budget_slices",
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["scope"], ["budgets.scope"], ondelete="CASCADE", name="fk_budget_slices_scope"),
        sa.PrimaryKeyConstraint("scope", "holder", name="pk_budget_slices"),
    )
