"""Alembic's entry point. The caller provides the connection and its transaction."""

from alembic import context

from seatrial.adapters.store_sql.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
