"""Many processes on one PostgreSQL: connections are bounded and told, and whoever finds none waits in line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import asyncpg
import pytest

from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.adapters.store_sql.postgres import PostgresDatabase
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.errors import StoreUnavailable
from seatrial.ports.store import Page
from seatrial.testing.postgres import PostgresServer
from tests.contracts.store.samples import MINUTE, NOON, passed, submit

pytestmark = pytest.mark.postgres

ALLOWED = 14
"""Three of them are for superusers, and so are we; PostgreSQL itself asks for no fewer."""


@pytest.fixture(scope="module")
def small_server() -> Iterator[PostgresServer]:
    with PostgresServer(max_connections=ALLOWED) as server:
        yield server


@asynccontextmanager
async def guests(server: PostgresServer, count: int) -> AsyncIterator[list[asyncpg.Connection]]:
    """Connections of somebody else."""
    async with AsyncExitStack() as stack:
        there = [
            await asyncpg.connect(host=str(server.directory), user="postgres", database="postgres")
            for _ in range(count)
        ]
        for connection in there:
            stack.push_async_callback(connection.close)
        yield there


async def used(server: PostgresServer, name: str) -> int:
    async with guests(server, 1) as [connection]:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1"
        return int(await connection.fetchval(query, name))


async def test_a_process_never_opens_more_than_it_may(small_server: PostgresServer) -> None:
    url = await small_server.create_database("bounded")
    await upgrade(url)
    async with SqlStore.at(url, connections=3) as store:
        jobs = await asyncio.gather(*(submit(store, trials=3) for _ in range(40)))
        await asyncio.gather(*(store.job(job.id) for job in jobs for _ in range(3)))
        assert await used(small_server, "bounded") == 3
        assert (await store.facts()).connections_here == 3


async def test_an_api_and_six_workers_share_few_connections(small_server: PostgresServer) -> None:
    """They would like 5 + 6 × 3; there are fourteen. Nobody is refused."""
    url = await small_server.create_database("crowded")
    await upgrade(url)
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(SqlStore.at(url, connections=5))
        workers = [await stack.enter_async_context(SqlStore.at(url, connections=3)) for _ in range(6)]

        async def work(store: SqlStore, name: str) -> int:
            done = 0
            while claimed := await store.claim(name, MINUTE, 2, NOON):
                await asyncio.gather(*(store.finish(trial.id, trial.attempt, passed(), NOON) for trial in claimed))
                await asyncio.gather(*(store.trial(trial.id) for trial in claimed))
                done += len(claimed)
            return done

        jobs = await asyncio.gather(*(submit(api, trials=4) for _ in range(20)))
        done = await asyncio.gather(*(work(store, f"w{number}") for number, store in enumerate(workers)))
        assert sum(done) == 80
        assert all(counts.passed == 4 for counts in (await api.counts([job.id for job in jobs])).values())


async def test_without_a_free_connection_it_waits_for_one(small_server: PostgresServer) -> None:
    url = await small_server.create_database("waiting")
    await upgrade(url)
    async with SqlStore.at(url, connections=2) as store:
        async with guests(small_server, ALLOWED - 1):
            submitting = asyncio.create_task(submit(store))
            asked = asyncio.create_task(store.jobs(Page()))
            assert await asked == [], "the one connection that it has goes on working"
            await asyncio.sleep(0.3)
            assert not submitting.done()
        job = await submitting
        assert [found.id for found in await store.jobs(Page())] == [job.id]


async def test_after_a_while_it_says_what_is_missing(small_server: PostgresServer) -> None:
    from sqlalchemy.engine import make_url

    url = await small_server.create_database("refused")
    database = PostgresDatabase(make_url(url), connections=2, in_line_sec=0.5)
    async with guests(small_server, ALLOWED):
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="no connection left") as refusal:
            await database.open()
        assert time.monotonic() - began >= 0.5
        assert "SEATRIAL_WORKER_DATABASE_CONNECTIONS" in refusal.value.fix
    await database.close()
