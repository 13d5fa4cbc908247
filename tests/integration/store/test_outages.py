"""A store that does not answer says so, and goes on when it is back."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.util import await_only

from seatrial.adapters.store_sql.database import database_at
from seatrial.adapters.store_sql.events import append_events
from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.adapters.store_sql.postgres import PostgresDatabase
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.domain.event import EventKind, NewEvent
from seatrial.errors import NotFound, StoreUnavailable
from seatrial.ports.store import Page
from seatrial.testing.postgres import PostgresServer
from tests.contracts.store.samples import MINUTE, NOON, passed, submit
from tests.waiting import LIMIT_SEC, eventually


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """One that a test may stop."""
    with PostgresServer() as server:
        yield server


@pytest.mark.postgres
async def test_postgresql_stopped_hard_under_load_loses_no_acknowledged_job(own_server: PostgresServer) -> None:
    url = await own_server.create_database("load")
    await upgrade(url)
    acknowledged: list[int] = []
    refused = 0

    async def submit_on(store: SqlStore) -> None:
        nonlocal refused
        while True:
            try:
                acknowledged.append((await submit(store, trials=3)).id)
            except StoreUnavailable:
                refused += 1
                await asyncio.sleep(0.05)

    async with SqlStore.at(url) as store:
        load = [asyncio.create_task(submit_on(store)) for _ in range(6)]
        await eventually(lambda: len(acknowledged) > 20, "some load")
        await asyncio.to_thread(own_server.stop_hard)
        before = len(acknowledged)
        await eventually(lambda: refused, "a refusal")
        await asyncio.to_thread(own_server.start)
        await eventually(lambda: len(acknowledged) > before, "jobs are taken again")
        for task in load:
            task.cancel()
        await asyncio.gather(*load, return_exceptions=True)
        assert before > 0 and refused > 0 and len(acknowledged) > before
        for job_id, counts in (await store.jobs.counts(acknowledged)).items():
            assert counts.queued == 3, f"job {job_id} was lost"


@pytest.mark.postgres
async def test_a_restart_between_two_operations_is_noticed_by_neither(own_server: PostgresServer) -> None:
    url = await own_server.create_database("quiet")
    await upgrade(url)
    database = PostgresDatabase(make_url(url), connections=5, trusted_sec=0.0)  # as if a while had passed
    async with SqlStore(database) as store:
        before = await submit(store)
        await asyncio.to_thread(own_server.stop)
        await asyncio.to_thread(own_server.start)
        assert await store.jobs.get(before.id) == before
        after = await submit(store)
        assert [job.id for job in await store.jobs.page(Page())] == [after.id, before.id]


@pytest.mark.postgres
async def test_who_stands_still_in_a_transaction_loses_its_locks(own_server: PostgresServer) -> None:
    """As a machine that was cut off between two statements: others must be able to recover its trials."""
    url = await own_server.create_database("still")
    await upgrade(url)
    locked, woken = asyncio.Event(), asyncio.Event()

    def stand_still(connection: Connection) -> None:
        connection.exec_driver_sql("SELECT id FROM trials FOR UPDATE").all()
        locked.set()
        await_only(woken.wait())
        connection.exec_driver_sql("SELECT 1")

    still = PostgresDatabase(make_url(url), connections=2, still_sec=3.0)
    async with SqlStore.at(url) as store, SqlStore(still):
        await submit(store, trials=1)
        [trial] = await store.trials.claim("w", MINUTE, 1, NOON)
        async with asyncio.timeout(LIMIT_SEC):
            while not locked.is_set():  # once more if the session was so slow that it ended before it had the lock
                standing = asyncio.create_task(still.write(stand_still))
                waiting = asyncio.create_task(locked.wait())
                await asyncio.wait({standing, waiting}, return_when=asyncio.FIRST_COMPLETED)
        await store.trials.finish(trial.id, 1, passed(), NOON)
        woken.set()
        with pytest.raises(StoreUnavailable):
            await standing
        assert await still.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar()) == 1


@pytest.mark.postgres
async def test_a_machine_that_confirms_nothing_is_given_up() -> None:
    """A session in the middle of a statement's messages is not idle, and nobody probes a connection that has something
    to confirm. ``tests/faults/site.py`` cuts machines off at such moments."""
    with PostgresServer(address="127.0.0.1") as server:
        database = PostgresDatabase(make_url(await server.create_database("gone")), connections=2)
        await database.open()
        try:
            found = await database.value(sa.text("SELECT current_setting('tcp_user_timeout')"))
        finally:
            await database.close()
    assert found == "20000"


async def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        async with SqlStore.at(f"postgresql+asyncpg://postgres@/x?host={tmp_path}"):
            pass
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable):
        async with SqlStore.at(f"sqlite:///{tmp_path}/file/seatrial.db"):
            pass


async def test_a_closed_store_says_so(url: str) -> None:
    async with SqlStore.at(url) as store:
        await submit(store)
    with pytest.raises(StoreUnavailable):
        await submit(store)
    with pytest.raises(StoreUnavailable):
        await store.jobs.page(Page())


async def test_a_refused_operation_undoes_only_itself(sqlite_url: str) -> None:
    """Operations that share a commit do not share their fate."""
    async with SqlStore.at(sqlite_url) as store:
        job = await submit(store, trials=20)
        claimed = await store.trials.claim("w", MINUTE, 20, NOON)
        ends = [store.trials.finish(trial.id, 1, passed(), NOON) for trial in claimed]
        wrong = [store.trials.finish(999, 1, passed(), NOON) for _ in range(20)]
        mixed = [call for pair in zip(ends, wrong, strict=True) for call in pair]
        answers = await asyncio.gather(*mixed, return_exceptions=True)
        assert [type(answer) for answer in answers[1::2]] == [NotFound] * 20
        assert [answer.id for answer in answers[::2] if not isinstance(answer, BaseException)] == [
            trial.id for trial in claimed
        ]
        assert (await store.jobs.counts([job.id]))[job.id].passed == 20


async def test_a_writer_that_does_not_know_the_lock_file_is_waited_for(sqlite_url: str, tmp_path: Path) -> None:
    async with SqlStore.at(sqlite_url) as store:
        foreign = sqlite3.connect(tmp_path / "seatrial.db", isolation_level=None)
        foreign.execute("BEGIN IMMEDIATE")
        submitting = asyncio.create_task(submit(store))
        for _ in range(50):
            assert await store.jobs.page(Page()) == []
        assert not submitting.done()
        foreign.execute("COMMIT")
        foreign.close()
        job = await submitting
        assert await store.jobs.page(Page()) == [job]


@pytest.mark.postgres
async def test_a_slow_transaction_is_never_overtaken_in_the_log(postgres_url: str) -> None:
    """The later number waits for the earlier one, or a reader would go on past a gap that is filled afterwards."""
    async with SqlStore.at(postgres_url) as store:
        job = await submit(store)
        fact = NewEvent(kind=EventKind.TRIAL_STEP, job_id=job.id)
        appended = asyncio.Event()
        database = database_at(postgres_url)
        await database.open()
        loop = asyncio.get_running_loop()

        def slowly(connection) -> None:  # type: ignore[no-untyped-def]
            append_events(connection, [fact.model_copy(update={"data": {"slow": True}})], NOON)
            loop.call_soon(appended.set)
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(1)")

        gate = await asyncpg.connect(postgres_url.replace("+asyncpg", ""))
        await gate.execute("SELECT pg_advisory_lock(1)")
        slow = asyncio.create_task(database.write(slowly))
        await appended.wait()
        quick = asyncio.create_task(store.events.append([fact], NOON))

        async def both_wait() -> bool:
            waiting = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            return await gate.fetchval(waiting) == 2

        await eventually(both_wait, "the quick one waits for the slow one, which waits at the gate")
        assert len(await store.events.read()) == 1
        await gate.close()
        await asyncio.gather(slow, quick)
        await database.close()
        assert [event.data for event in await store.events.read(after=1)] == [{"slow": True}, {}]


async def test_a_call_that_was_given_up_before_its_turn_never_happens(sqlite_url: str, tmp_path: Path) -> None:
    async with SqlStore.at(sqlite_url) as store:
        foreign = sqlite3.connect(tmp_path / "seatrial.db", isolation_level=None)
        foreign.execute("BEGIN IMMEDIATE")
        given_up, patient = asyncio.create_task(submit(store)), asyncio.create_task(submit(store))
        for _ in range(50):
            assert await store.jobs.page(Page()) == []
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        foreign.execute("COMMIT")
        foreign.close()
        job = await patient
        assert await store.jobs.page(Page()) == [job]
