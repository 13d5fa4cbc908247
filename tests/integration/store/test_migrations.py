"""Migrations make exactly the tables that the code works on."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql import migrate, migrations
from seatrial.adapters.store_sql.database import database_at
from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.adapters.store_sql.migrations.versions import v0005_added_attempts
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.adapters.store_sql.tables import metadata
from seatrial.domain.result import Spent, Usage
from seatrial.domain.trial import Outcome
from seatrial.errors import InvalidInput, SetupProblem
from seatrial.ports.store import Page, TrialFilter
from tests.contracts.store.samples import MINUTE, NOON, faulty, passed, submit


async def look(url: str, operation: Any) -> Any:
    database = database_at(url)
    await database.open()
    try:
        return await database.read(operation)
    finally:
        await database.close()


def differences(connection: Connection) -> list[Any]:
    return list(compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata))


def shape(connection: Connection) -> dict[str, Any]:
    """Everything the database says about its tables, for what Alembic does not compare (conditions, cascades)."""
    inspector = sa.inspect(connection)
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE name != 'alembic_version'")
        return {row.name: sorted("".join((row.sql or "").split()).replace(")", ",").split(",")) for row in rows}
    return {
        table: (
            sorted(str({**column, "type": str(column["type"])}) for column in inspector.get_columns(table)),
            sorted(map(str, inspector.get_indexes(table))),
            sorted(map(str, inspector.get_foreign_keys(table))),
            inspector.get_pk_constraint(table),
        )
        for table in sorted(metadata.tables)
    }


async def test_migrations_produce_the_metadata(url: str, empty_url: str) -> None:
    assert await look(url, differences) == []
    direct = database_at(empty_url)
    await direct.open()
    await direct.write(metadata.create_all)
    await direct.close()
    migrated, created = await look(url, shape), await look(empty_url, shape)
    migrated.pop("sqlite_autoindex_alembic_version_1", None)
    migrated.pop("alembic_version_pkc", None)
    assert migrated == created


async def test_a_missing_column_would_be_noticed(url: str) -> None:
    database = database_at(url)
    await database.open()
    await database.write(lambda connection: connection.exec_driver_sql("ALTER TABLE workers ADD COLUMN odd TEXT"))
    await database.close()
    assert len(await look(url, differences)) == 1


async def test_the_newest_revision_is_the_one_the_code_asks_for() -> None:
    [directory] = migrations.__path__
    assert ScriptDirectory(directory).get_current_head() == migrate.HEAD


async def test_a_store_without_tables_says_how_to_get_them(empty_url: str) -> None:
    with pytest.raises(SetupProblem, match="seatrial db upgrade"):
        async with SqlStore.at(empty_url):
            pass
    await upgrade(empty_url)
    async with SqlStore.at(empty_url) as store:
        assert await store.tasks.datasets() == []


async def test_upgrading_twice_or_at_the_same_moment_is_harmless(empty_url: str) -> None:
    await asyncio.gather(*(upgrade(empty_url) for _ in range(4)))
    async with SqlStore.at(empty_url) as store:
        first = await store.install_id()
    await upgrade(empty_url)
    async with SqlStore.at(empty_url) as store:
        assert await store.install_id() == first


async def test_tables_of_a_newer_version_are_refused(url: str) -> None:
    database = database_at(url)
    await database.open()
    await database.write(lambda connection: connection.exec_driver_sql("UPDATE alembic_version SET version_num='9999'"))
    await database.close()
    with pytest.raises(SetupProblem, match="Update Seatrial"):
        async with SqlStore.at(url):
            pass


async def test_a_database_of_another_system_is_left_alone(empty_url: str) -> None:
    """TBench Runner calls a table ``tasks`` too, and its ``DATABASE_URL`` is understood."""
    database = database_at(empty_url)
    await database.open()
    for statement in ("CREATE TABLE tasks (id INTEGER, name TEXT)", "INSERT INTO tasks VALUES (1, 'theirs')"):
        await database.write(lambda connection, sql=statement: connection.exec_driver_sql(sql))
    await database.close()
    with pytest.raises(SetupProblem, match="did not make: tasks") as refusal:
        await upgrade(empty_url)
    assert "DATABASE_URL" in refusal.value.fix
    names = await look(empty_url, lambda connection: sa.inspect(connection).get_table_names())
    kept = await look(
        empty_url, lambda connection: connection.exec_driver_sql("SELECT name FROM tasks").scalars().all()
    )
    assert (names, kept) == (["tasks"], ["theirs"])


async def test_tables_with_other_names_are_no_hindrance(empty_url: str) -> None:
    database = database_at(empty_url)
    await database.open()
    await database.write(lambda connection: connection.exec_driver_sql("CREATE TABLE of_somebody_else (id INTEGER)"))
    await database.close()
    await upgrade(empty_url)
    async with SqlStore.at(empty_url) as store:
        assert await store.tasks.datasets() == []


def test_other_databases_are_refused_without_telling_the_password() -> None:
    with pytest.raises(InvalidInput) as refusal:
        database_at("mysql://me:secret@host/name")
    assert "secret" not in str(refusal.value)


async def test_what_earlier_tries_used_is_filled_in(url: str) -> None:
    """As in a store from before spent_… was kept: two tries with a result, and a trial without any."""
    async with SqlStore.at(url) as store:
        job = await submit(store, trials=2)
        for result in (faulty().model_copy(update={"usage": Usage(input_tokens=5, cached_tokens=2)}), passed()):
            [trial] = await store.trials.claim("w", MINUTE, 1, NOON, job_id=job.id)
            if result.outcome is Outcome.ERROR:
                await store.trials.try_again(trial.id, trial.try_number, result, timedelta(0), NOON)
                await store.jobs.cancel_trials([trial.id + 1], NOON)
            else:
                await store.trials.finish(trial.id, trial.try_number, result, NOON)
        before = [summary.spent for summary in await store.trials.summaries(TrialFilter(job_id=job.id), Page())]
        assert before[1] == Spent(seconds=3.5, input_tokens=1205, cached_tokens=2, output_tokens=34, cost_usd=0.0125)
        database = database_at(url)
        await database.open()
        await database.write(_as_before)
        await database.close()
        assert [each.spent for each in await store.trials.summaries(TrialFilter(job_id=job.id), Page())] == before


def _as_before(connection: Connection) -> None:
    blank = ", ".join(f"spent_{name} = NULL" for name in Spent.model_fields)
    connection.exec_driver_sql(f"UPDATE trials SET {blank}")
    v0005_added_attempts._fill_in(connection)
