"""Open work by task, workers that leave because they are idle, and leases of duties that one process does for all."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)
_OPEN = sa.text("state IN ('queued', 'running')")


def upgrade() -> None:
    op.create_index("ix_trials_open", "trials", ["job_id", "task_digest"], sqlite_where=_OPEN, postgresql_where=_OPEN)
    op.add_column("workers", sa.Column("leaving_at", _TIME))
    op.create_table(
        "duty_leases",
        sa.Column("duty", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("until", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("duty", name="pk_duty_leases"),
    )
