"""Upgrades the tables of a store. ``wiring`` and ``seatrial db upgrade`` call it. Imports Alembic only if needed."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database, database_at
from seatrial.adapters.store_sql.tables import meta, metadata
from seatrial.errors import SetupProblem

HEAD = "0012"
"""The newest revision in ``migrations/versions``; a test compares."""

_MIGRATING = 0x5EA7_0002
"""Advisory lock in PostgreSQL: processes that start together migrate one after the other."""
_INSTALL_ID = "install_id"


async def upgrade(url: str) -> None:
    """Runs all missing migrations in one transaction. Creates SQLite's file if it is missing."""
    database = database_at(url)
    try:
        await database.open()
        if await database.read(_revision) != HEAD:
            await database.write(_migrate)
    finally:
        await database.close()


async def require_current(database: Database) -> None:
    """Raises ``SetupProblem`` if another version of Seatrial created the tables."""
    found = await database.read(_revision)
    if found != HEAD:
        raise SetupProblem(
            f"The store's tables are at revision {found or 'none'}; this version needs {HEAD}.",
            fix="Run: seatrial db upgrade" if found is None or found < HEAD else "Update Seatrial.",
        )


async def read_install_id(database: Database) -> str:
    query = sa.select(meta.c.value).where(meta.c.key == _INSTALL_ID)
    return str(await database.read(lambda connection: connection.execute(query).scalar_one()))


def _revision(connection: Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return found


def _refuse_other_tables(connection: Connection) -> None:
    """DATABASE_URL may still name the database of another system, which has tables with the same names."""
    there = set(sa.inspect(connection).get_table_names())
    if "alembic_version" not in there and (taken := sorted(there & set(metadata.tables))):
        raise SetupProblem(
            f"The database has tables that Seatrial did not make: {', '.join(taken)}.",
            fix="Use a separate database: another name in DATABASE_URL, or none for SQLite in SEATRIAL_HOME.",
        )


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATING)))
    _refuse_other_tables(connection)
    config = Config()
    config.set_main_option("script_location", "seatrial.adapters.store_sql:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)
    if not connection.execute(sa.select(meta.c.key).where(meta.c.key == _INSTALL_ID)).first():
        connection.execute(sa.insert(meta).values(key=_INSTALL_ID, value=secrets.token_hex(8)))
