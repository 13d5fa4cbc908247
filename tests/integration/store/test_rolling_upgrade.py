"""While a fleet is upgraded, workers of the version before go on with the tables of the new one."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.database import Database, database_at
from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.errors import SetupProblem
from tests.contracts.store.samples import submit

BEFORE = "0006"
"""The last revision of versions that knew one machine only. Later ones may only add."""


def _migrate_to(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", "seatrial.adapters.store_sql:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _columns(connection: Connection) -> dict[tuple[str, str], dict[str, Any]]:
    inspector = sa.inspect(connection)
    return {
        (table, column["name"]): {**column, "type": str(column["type"])}
        for table in inspector.get_table_names()
        for column in inspector.get_columns(table)
    }


def _copy_as_before(connection: Connection, old: dict[tuple[str, str], Any], table: str, **changed: int) -> None:
    """Inserts a row as a worker of the old version does: with the columns that it knows."""
    names = [name for where, name in old if where == table]
    values = ", ".join(str(changed[name]) if name in changed else name for name in names)
    connection.execute(sa.text(f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {table} LIMIT 1"))


@pytest.fixture
async def old(empty_url: str) -> dict[tuple[str, str], dict[str, Any]]:
    database = database_at(empty_url)
    await database.open()
    try:
        await database.write(lambda connection: _migrate_to(connection, BEFORE))
        return await database.read(_columns)
    finally:
        await database.close()


async def _opened(url: str) -> Database:
    database = database_at(url)
    await database.open()
    return database


async def test_later_revisions_only_add(old: dict[tuple[str, str], dict[str, Any]], empty_url: str) -> None:
    await upgrade(empty_url)
    database = await _opened(empty_url)
    try:
        new = await database.read(_columns)
    finally:
        await database.close()
    assert {name: new.get(name) for name in old} == old
    tables = {table for table, _ in old}
    added = {name: column for name, column in new.items() if name not in old and name[0] in tables}
    assert added
    assert [name for name, column in added.items() if not column["nullable"] and column["default"] is None] == []


async def test_an_old_workers_rows_fit_and_new_workers_read_them(
    old: dict[tuple[str, str], dict[str, Any]], empty_url: str
) -> None:
    await upgrade(empty_url)
    async with SqlStore.at(empty_url) as store:
        first = await submit(store)
        database = await _opened(empty_url)
        try:
            await database.write(lambda connection: _copy_as_before(connection, old, "jobs", id=first.id + 50))
            await database.write(
                lambda connection: _copy_as_before(connection, old, "trials", id=900, job_id=first.id + 50)
            )
        finally:
            await database.close()
        counts = await store.jobs.counts([first.id, first.id + 50])
        assert counts[first.id + 50].queued == 1


async def test_a_worker_that_starts_needs_its_own_revision(
    old: dict[tuple[str, str], dict[str, Any]], empty_url: str
) -> None:
    with pytest.raises(SetupProblem, match=f"revision {BEFORE}"):
        async with SqlStore.at(empty_url):
            pass
    await upgrade(empty_url)
    async with SqlStore.at(empty_url) as store:
        assert await store.install_id()
