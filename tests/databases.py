"""Real databases for tests, with the tables in place. A conftest imports the fixtures at the end by name."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.testing.postgres import PostgresServer

_TEMPLATE = "with_tables"


class SqliteFiles:
    """Copies of one migrated file: a test does not pay for Alembic."""

    def __init__(self, directory: Path) -> None:
        self._template = directory / "template.db"

    async def fresh(self, directory: Path) -> str:
        if not self._template.exists():
            await upgrade(f"sqlite:///{self._template}")
        shutil.copy(self._template, directory / "seatrial.db")
        return f"sqlite:///{directory / 'seatrial.db'}"


class PostgresDatabases:
    """Copies of one migrated database."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        self._has_template = False

    async def fresh(self) -> str:
        if not self._has_template:
            await upgrade(await self._server.create_database(_TEMPLATE))
            self._has_template = True
        return await self._server.create_database(f"test_{next(self._numbers)}", _TEMPLATE)

    async def empty(self) -> str:
        return await self._server.create_database(f"test_{next(self._numbers)}")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server per pytest process; with xdist that is one per worker, which costs a second and shares nothing."""
    with PostgresServer(shared=True) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_databases(postgres_server: PostgresServer) -> PostgresDatabases:
    return PostgresDatabases(postgres_server)


@pytest.fixture(scope="session")
def sqlite_files(tmp_path_factory: pytest.TempPathFactory) -> SqliteFiles:
    return SqliteFiles(tmp_path_factory.mktemp("sqlite"))
