"""Alembic's entry: the connection, and with it the transaction, is the caller's."""

from alembic import context

from seatrial.adapters.store_sql.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
