"""PostgreSQL through asyncpg. Operations run in SQLAlchemy's greenlets, so they stay plain functions here too.

Rules that keep concurrent operations from waiting for each other in a circle: rows of ``jobs`` are locked first and in
order of id, rows of ``trials`` after them and in order of id, events are appended last (see ``events.append_events``).
What still collides is run again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from seatrial.errors import StoreUnavailable

_TRIES = 5
_COLLISIONS = ("40001", "40P01")
"""Serialization failure, deadlock: nothing happened, and doing it again is right."""
_OUTAGES = ("08", "53", "57", "58")
"""Connection trouble, no resources left, shut down by an operator, system error."""


_Way = Callable[[Callable[[Connection], Any]], Awaitable[Any]]


class PostgresDatabase:
    def __init__(self, url: URL, pool_size: int = 10) -> None:
        self._url = url
        self._pool_size = pool_size
        self._engine: AsyncEngine | None = None

    async def open(self) -> None:
        self._engine = create_async_engine(
            self._url,
            pool_size=self._pool_size,
            max_overflow=0,  # connections are dear to open: better to wait for one than to open and drop some
            pool_pre_ping=True,  # a restarted server is noticed before the operation, not by it
            connect_args={"timeout": 10, "server_settings": {"application_name": "seatrial", "timezone": "UTC"}},
        )
        await self.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())

    async def close(self) -> None:
        if self._engine is not None:
            await self._engine.dispose()
        self._engine = None

    async def read[T](self, operation: Callable[[Connection], T]) -> T:
        return await self._run(operation, self._look)

    async def write[T](self, operation: Callable[[Connection], T], *, durable: bool = True) -> T:
        return await self._run(operation, self._change if durable else self._change_soon)

    async def _run[T](self, operation: Callable[[Connection], T], run: _Way) -> T:
        for left in reversed(range(_TRIES)):
            try:
                result: T = await run(operation)
                return result
            except DBAPIError as fault:
                if _state(fault) not in _COLLISIONS or not left:
                    raise _classified(fault) from fault
                await asyncio.sleep(random.uniform(0, 0.02))  # noqa: S311
            except (OSError, PoolTimeout, TimeoutError) as fault:
                raise StoreUnavailable(f"The store did not answer: {fault}.") from fault
        raise AssertionError("unreachable")

    async def _look(self, operation: Callable[[Connection], Any]) -> Any:
        async with self._opened.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            return await connection.run_sync(operation)

    async def _change(self, operation: Callable[[Connection], Any]) -> Any:
        async with self._opened.begin() as connection:
            return await connection.run_sync(operation)

    async def _change_soon(self, operation: Callable[[Connection], Any]) -> Any:
        async with self._opened.begin() as connection:
            await connection.exec_driver_sql("SET LOCAL synchronous_commit TO off")
            return await connection.run_sync(operation)

    @property
    def _opened(self) -> AsyncEngine:
        if self._engine is None:
            raise StoreUnavailable("The store is closed.")
        return self._engine


def _state(fault: DBAPIError) -> str:
    return getattr(fault.orig, "sqlstate", None) or ""


def _classified(fault: DBAPIError) -> Exception:
    outage = isinstance(fault, OperationalError | InterfaceError) or _state(fault).startswith(_OUTAGES)
    if outage or fault.connection_invalidated:
        return StoreUnavailable(f"The store did not answer: {fault.orig}.")
    return fault
