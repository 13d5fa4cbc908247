"""The store under test: the fake, SQLite and PostgreSQL, each empty."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from seatrial.adapters.store_sql.store import SqlStore
from seatrial.ports.store import Store
from seatrial.testing.memory_store import MemoryStore
from tests.databases import postgres_databases, postgres_server, sqlite_files  # noqa: F401

StoreOpener = Callable[[], Awaitable[Store]]

KINDS = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=KINDS)
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreOpener]:
    """Opens the same store once more, as another process would. In memory there is one and only one."""
    async with AsyncExitStack() as opened:
        if request.param == "memory":
            only = MemoryStore()

            async def open_memory() -> Store:
                return only

            yield open_memory
            return
        if request.param == "sqlite":
            url = await request.getfixturevalue("sqlite_files").fresh(tmp_path)
        else:
            url = await request.getfixturevalue("postgres_databases").fresh()

        async def open_sql() -> Store:
            return await opened.enter_async_context(SqlStore.at(url))

        yield open_sql


@pytest.fixture
async def store(open_store: StoreOpener) -> Store:
    return await open_store()
