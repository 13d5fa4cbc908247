"""Suspected trials run in groups, and losses from outside are counted apart."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("trials", sa.Column("outside_losses", sa.Integer, nullable=False, server_default="0"))
    op.add_column("trials", sa.Column("search_group", sa.Text))
