"""URLs of real databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.databases import (  # noqa: F401
    PostgresDatabases,
    SqliteFiles,
    postgres_databases,
    postgres_server,
    sqlite_files,
)


@pytest.fixture
async def sqlite_url(sqlite_files: SqliteFiles, tmp_path: Path) -> str:  # noqa: F811
    return await sqlite_files.fresh(tmp_path)


@pytest.fixture
async def postgres_url(postgres_databases: PostgresDatabases) -> str:  # noqa: F811
    return await postgres_databases.fresh()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with its tables in place."""
    if kind == "sqlite":
        return await request.getfixturevalue("sqlite_files").fresh(tmp_path)
    return await request.getfixturevalue("postgres_databases").fresh()


@pytest.fixture
async def empty_url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables; the file does not even exist."""
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/home/seatrial.db"
    return await request.getfixturevalue("postgres_databases").empty()
