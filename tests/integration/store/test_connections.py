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
from tests.waiting import eventually

pytestmark = pytest.mark.postgres

ALLOWED = 14
"""Three of them are for superusers, and so are we; PostgreSQL itself asks for no fewer."""


@pytest.fixture(scope="module")
def small_server() -> Iterator[PostgresServer]:
    with PostgresServer(max_connections=ALLOWED) as server:
        yield server


@asynccontextmanager
async def crowd(server: PostgresServer, left: int = 0) -> AsyncIterator[None]:
    """Connections of somebody else: all but those in use. Ones that are just being closed are taken once they are."""
    async with AsyncExitStack() as stack:

        async def another() -> bool:
            try:
                connection = await asyncpg.connect(host=str(server.directory), user="postgres", database="postgres")
            except asyncpg.TooManyConnectionsError:
                return False
            stack.push_async_callback(connection.close)
            return True

        for _ in range(ALLOWED - left):
            await eventually(another, "a connection")
        yield


def refusals(server: PostgresServer) -> int:
    """As the server's log counts them."""
    return (server.directory / "log").read_text().count("too many clients already")


async def uses(server: PostgresServer, name: str, connections: int) -> bool:
    connection = await asyncpg.connect(host=str(server.directory), user="postgres", database="postgres")
    try:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1"
        return bool(await connection.fetchval(query, name) == connections)
    finally:
        await connection.close()


async def test_a_process_never_opens_more_than_it_may(small_server: PostgresServer) -> None:
    url = await small_server.create_database("bounded")
    await upgrade(url)
    async with SqlStore.at(url, connections=3) as store:
        jobs = await asyncio.gather(*(submit(store, trials=3) for _ in range(40)))
        await asyncio.gather(*(store.jobs.get(job.id) for job in jobs for _ in range(3)))
        # The server forgets a connection that was closed a moment later.
        await eventually(lambda: uses(small_server, "bounded", 3), "three are open")
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
            while claimed := await store.trials.claim(name, MINUTE, 2, NOON):
                await asyncio.gather(
                    *(store.trials.finish(trial.id, trial.try_number, passed(), NOON) for trial in claimed)
                )
                await asyncio.gather(*(store.trials.get(trial.id) for trial in claimed))
                done += len(claimed)
            return done

        jobs = await asyncio.gather(*(submit(api, trials=4) for _ in range(20)))
        done = await asyncio.gather(*(work(store, f"w{number}") for number, store in enumerate(workers)))
        assert sum(done) == 80
        assert all(counts.passed == 4 for counts in (await api.jobs.counts([job.id for job in jobs])).values())


async def test_whoever_has_one_connection_reads_and_writes_with_it(small_server: PostgresServer) -> None:
    url = await small_server.create_database("one")
    await upgrade(url)
    async with SqlStore.at(url, connections=4) as store, crowd(small_server, left=1):
        jobs = await asyncio.gather(*(submit(store, trials=2) for _ in range(5)))
        claimed = await store.trials.claim("w", MINUTE, 10, NOON)
        await asyncio.gather(*(store.trials.finish(trial.id, 1, passed(), NOON) for trial in claimed))
        assert all(counts.passed == 2 for counts in (await store.jobs.counts([job.id for job in jobs])).values())


async def test_whoever_has_none_waits_until_somebody_leaves(small_server: PostgresServer) -> None:
    url = await small_server.create_database("waiting")
    await upgrade(url)
    store = SqlStore.at(url, connections=2)
    async with crowd(small_server):
        before = refusals(small_server)
        opening = asyncio.create_task(store.__aenter__())
        await eventually(lambda: refusals(small_server) > before + 1, "it was refused, and asked again")
        assert not opening.done()
    await opening
    assert await store.jobs.page(Page()) == []
    await store.__aexit__(None, None, None)


async def test_after_a_while_it_says_what_is_missing(small_server: PostgresServer) -> None:
    from sqlalchemy.engine import make_url

    url = await small_server.create_database("refused")
    database = PostgresDatabase(make_url(url), connections=2, in_line_sec=0.5)
    async with crowd(small_server):
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="no connection left") as refusal:
            await database.open()
        assert time.monotonic() - began >= 0.5
        assert "SEATRIAL_WORKER_DATABASE_CONNECTIONS" in refusal.value.fix
    await database.close()
