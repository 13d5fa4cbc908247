"""PostgreSQL through asyncpg. SQLAlchemy's greenlets run the operations, so they are plain functions here too.

Operations lock in one order to avoid deadlocks: rows of ``jobs`` first, by id; then rows of ``trials``, by id; events
are appended last (see ``events.append_events``). Operations that still collide are run again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import sqlalchemy as sa
from asyncpg import PostgresError
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.util import greenlet_spawn

from seatrial.adapters.store_sql.database import Database
from seatrial.errors import StoreUnavailable
from seatrial.ports.store import StoreFacts

_TRIES = 5
_TRUSTED_SEC = 1.0
"""A connection that was used within this time is believed to be alive."""
_IN_LINE_SEC = 30.0
"""How long an operation waits while the server has no connection left, or is starting."""
_FULL = ("53300",)
"""The server has no connection left."""
_STARTING = ("57P03",)
"""The server starts, stops or recovers."""
_COLLISIONS = ("40001", "40P01")
"""Serialization failure and deadlock: nothing was changed, so the operation is run again."""
_OUTAGES = ("08", "25P03", "53", "57", "58")
"""Connection errors, a transaction that stood still for too long, no resources left, shut down by an operator, system
error."""
_STILL_SEC = 10
"""The server ends a transaction whose process says nothing for this long. A machine that was cut off, or a frozen
process, would otherwise keep its locks for hours, and nobody could recover its trials."""
_GONE = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""The server notices within half a minute that a machine is gone, and ends its transactions. The last one is for a
machine that has not confirmed what it was sent: then nothing is probed, and a session in the middle of a statement's
messages is not idle."""

_AWAY = (OperationalError, InterfaceError, OSError, PoolTimeout, TimeoutError)
_FIRST_PAUSE_SEC = 0.05
_LONGEST_PAUSE_SEC = 1.0
_FACTS = """SELECT clock_timestamp(), (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"""

_Way = Callable[[Callable[[Connection], Any]], Awaitable[Any]]


class PostgresDatabase(Database):
    """Reads and writes use separate connections. Switching a connection between autocommit and transactions would take
    a quarter of the time of a small read.

    Opens at most ``connections`` in total, and at least one of each kind. Operations wait for a free connection, also
    if the server has none left."""

    def __init__(
        self,
        url: URL,
        connections: int,
        in_line_sec: float = _IN_LINE_SEC,
        trusted_sec: float = _TRUSTED_SEC,
        still_sec: float = _STILL_SEC,
    ) -> None:
        self._url = url
        self._readers = max(1, connections // 2)
        self._writers = max(1, connections - self._readers)
        self._in_line_sec = in_line_sec
        self._trusted_sec = trusted_sec
        self._still_sec = still_sec
        self._engine: AsyncEngine | None = None
        self._reading: AsyncEngine | None = None
        # The pool's own queue loses operations that wait for a connection which could not be opened.
        self._reading_turns = asyncio.Semaphore(self._readers)
        self._writing_turns = asyncio.Semaphore(self._writers)

    async def open(self) -> None:
        self._engine = self._new_engine(self._writers)
        self._reading = self._new_engine(self._readers, isolation_level="AUTOCOMMIT")
        await self.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())

    async def close(self) -> None:
        for engine in (self._reading, self._engine):
            if engine is not None:
                await engine.dispose()
        self._engine = self._reading = None

    async def facts(self) -> StoreFacts:
        now, used, allowed = await self.read(lambda connection: tuple(connection.exec_driver_sql(_FACTS).one()))
        here = self._readers + self._writers
        return StoreFacts(
            kind="postgresql", now=now, connections=used, connections_allowed=allowed, connections_here=here
        )

    async def read[T](self, operation: Callable[[Connection], T]) -> T:
        return await self._run(operation, self._look)

    async def write[T](self, operation: Callable[[Connection], T], *, durable: bool = True) -> T:
        return await self._run(operation, self._change if durable else self._change_soon)

    async def _run[T](self, operation: Callable[[Connection], T], run: _Way) -> T:
        deadline = time.monotonic() + self._in_line_sec
        collisions, rereads, pause = 0, 0, _FIRST_PAUSE_SEC
        while True:
            try:
                result: T = await run(operation)
                return result
            except (DBAPIError, PostgresError, OSError, PoolTimeout, TimeoutError) as fault:
                if run == self._look and rereads < self._readers and getattr(fault, "connection_invalidated", False):
                    rereads += 1  # the server was restarted since this connection was used last
                    continue
                state = _state(fault)
                collisions += state in _COLLISIONS
                run = self._change_among_readers if state in _FULL and run != self._look else run
                waits = state in _FULL + _STARTING and time.monotonic() < deadline
                if not waits and (state not in _COLLISIONS or collisions >= _TRIES):
                    raise _classified(fault) from fault
            if waits:
                pause = min(2 * pause, _LONGEST_PAUSE_SEC)
            await asyncio.sleep(random.uniform(0, pause if waits else 0.02))  # noqa: S311

    async def _look(self, operation: Callable[[Connection], Any]) -> Any:
        if self._reading is None:
            raise StoreUnavailable("The store is closed.")
        async with self._turn(self._reading_turns):
            return await greenlet_spawn(_with_connection, self._reading.sync_engine, operation)

    async def _change(self, operation: Callable[[Connection], Any]) -> Any:
        async with self._turn(self._writing_turns), self._opened.begin() as connection:
            return await connection.run_sync(operation)

    async def _change_soon(self, operation: Callable[[Connection], Any]) -> Any:
        async with self._turn(self._writing_turns), self._opened.begin() as connection:
            await connection.exec_driver_sql("SET LOCAL synchronous_commit TO off")
            return await connection.run_sync(operation)

    async def _change_among_readers(self, operation: Callable[[Connection], Any]) -> Any:
        """Writes on a connection for reads. With a full server, a process that has one connection can continue."""
        if self._reading is None:
            raise StoreUnavailable("The store is closed.")
        async with self._turn(self._reading_turns), self._reading.connect() as connection:
            await connection.execution_options(isolation_level="READ COMMITTED")
            async with connection.begin():
                return await connection.run_sync(operation)

    @asynccontextmanager
    async def _turn(self, turns: asyncio.Semaphore) -> AsyncIterator[None]:
        """Admits one operation per connection. The others wait, at most as long as for a full server."""
        async with asyncio.timeout(self._in_line_sec) if turns.locked() else nullcontext():
            await turns.acquire()
        try:
            yield
        finally:
            turns.release()

    def _new_engine(self, connections: int, **more: Any) -> AsyncEngine:
        still = {"idle_in_transaction_session_timeout": f"{self._still_sec * 1000:.0f}"}
        settings = {"application_name": "seatrial", "timezone": "UTC", **still, **_GONE}
        engine = create_async_engine(
            self._url,
            pool_size=connections,
            max_overflow=0,  # opening a connection is expensive, so waiting for one is better
            connect_args={"timeout": 10, "server_settings": settings},
            **more,
        )
        _notice_restarts(engine, self._trusted_sec)
        return engine

    @property
    def _opened(self) -> AsyncEngine:
        if self._engine is None:
            raise StoreUnavailable("The store is closed.")
        return self._engine


def _with_connection(engine: Engine, operation: Callable[[Connection], Any]) -> Any:
    """Uses one greenlet. SQLAlchemy's async connections use one each for opening, running and closing."""
    with engine.connect() as connection:
        return operation(connection)


def _notice_restarts(engine: AsyncEngine, trusted_sec: float) -> None:
    """Detects a restarted server before an operation fails. SQLAlchemy's ``pool_pre_ping`` asks the server each time,
    which makes small reads 1.5 times as slow. Here a connection that was used a moment ago is not checked."""

    @sa.event.listens_for(engine.sync_engine, "checkin")
    def _remember(_: object, record: ConnectionPoolEntry) -> None:
        record.info["used_at"] = time.monotonic()

    @sa.event.listens_for(engine.sync_engine, "checkout")
    def _ask(connection: Any, record: ConnectionPoolEntry, _: object) -> None:
        used_at = record.info.get("used_at")
        if used_at is None or time.monotonic() - used_at < trusted_sec:
            return
        try:
            connection.ping()
        except Exception as fault:
            raise DisconnectionError from fault  # the pool tries another connection, and finally opens a new one


def _state(fault: Exception) -> str:
    """The SQLSTATE. A refused connection raises the driver's error, later failures raise SQLAlchemy's."""
    return getattr(getattr(fault, "orig", None) or fault, "sqlstate", None) or ""


def _classified(fault: Exception) -> Exception:
    state, reason = _state(fault), getattr(fault, "orig", None) or fault
    if state in _FULL:
        return StoreUnavailable(
            f"PostgreSQL has no connection left: {reason}.",
            fix="Raise its max_connections, or lower SEATRIAL_DATABASE_CONNECTIONS and "
            "SEATRIAL_WORKER_DATABASE_CONNECTIONS.",
        )
    outage = isinstance(fault, _AWAY) or state.startswith(_OUTAGES)
    if outage or (isinstance(fault, DBAPIError) and fault.connection_invalidated):
        return StoreUnavailable(f"The store did not answer: {reason}.")
    return fault
