"""What trials need of their workers, which trials wait for room, and what trials suffered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)
_QUEUED = sa.text("state = 'queued'")


def upgrade() -> None:
    """Trials of older versions need nothing special: every worker takes them, as before."""
    op.add_column("trials", sa.Column("needs", sa.Text, nullable=False, server_default=""))
    for name in ("throttled_sec", "model_wait_sec", "pace_wait_sec"):
        op.add_column("trials", sa.Column(name, sa.Double))
    op.add_column("trials", sa.Column("memory_pressure", sa.BigInteger))
    op.create_index(
        "ix_trials_needs", "trials", ["job_id", "needs", "id"], sqlite_where=_QUEUED, postgresql_where=_QUEUED
    )
    op.create_table(
        "needs", sa.Column("text", sa.Text, nullable=False), sa.PrimaryKeyConstraint("text", name="pk_needs")
    )
    op.execute("INSERT INTO needs (text) VALUES ('')")
    op.create_table(
        "waits_for_room",
        sa.Column("trial_id", _ID, nullable=False, autoincrement=False),
        sa.Column("since", _TIME, nullable=False),
        sa.Column("worker", sa.Text),
        sa.Column("until", _TIME),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], ondelete="CASCADE", name="fk_waits_for_room_trial_id"),
        sa.PrimaryKeyConstraint("trial_id", name="pk_waits_for_room"),
    )
