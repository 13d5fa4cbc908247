"""How often a trial shared a lost worker, so that suspected trials can run alone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("trials", sa.Column("shared_losses", sa.Integer, nullable=False, server_default="0"))
    suspected = sa.text("shared_losses >= 2 AND state <> 'ended'")
    op.create_index("ix_trials_suspected", "trials", ["id"], sqlite_where=suspected, postgresql_where=suspected)
