"""A database as the parts of the store see it: operations on one connection, each in its own transaction.

An operation is a plain function that must be safe to run twice, because PostgreSQL may require that after a deadlock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import ArgumentError

from seatrial.adapters.store_sql.rows import Values, values_of
from seatrial.errors import InvalidInput
from seatrial.ports.store import StoreFacts

CONNECTIONS = 5
"""Default number of connections of one process to a server."""
_FIX = "Use postgresql://user:password@host/name, or leave it empty for SQLite."


class Database(ABC):
    groups_writes: ClassVar[bool] = False
    """Whether writes that come together share a transaction, and calls may come from any event loop."""

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def facts(self) -> StoreFacts: ...

    @abstractmethod
    async def read[T](self, operation: Callable[[Connection], T]) -> T:
        """Runs the operation outside a transaction: each statement sees what was committed when it began."""

    @abstractmethod
    async def write[T](self, operation: Callable[[Connection], T], *, durable: bool = True) -> T:
        """Runs the operation in one transaction and returns after the commit.

        A ``durable`` write survives a power failure. Without it, it survives only a crash of this program, which is
        enough for frequent reports of a worker, and far cheaper."""

    async def rows(self, query: sa.Executable, given: Values | None = None) -> list[Values]:
        return await self.read(lambda connection: values_of(connection.execute(query, given)))

    async def column(self, query: sa.Executable, given: Values | None = None) -> list[Any]:
        """The first column of all rows."""
        return await self.read(lambda connection: list(connection.execute(query, given).scalars()))

    async def value(self, query: sa.Executable) -> Any:
        """The first column of the first row; ``None`` without rows."""
        return await self.read(lambda connection: connection.execute(query).scalar())

    async def change(self, statement: sa.Update | sa.Delete, *, durable: bool = True) -> int:
        """Runs one statement. Returns the number of rows that it changed."""
        return await self.write(lambda connection: connection.execute(statement).rowcount, durable=durable)


def database_at(url: str, connections: int = CONNECTIONS) -> Database:
    """The database of a SQLAlchemy URL, not opened yet. Imports only the driver that it needs."""
    try:
        address = make_url(url)
    except ArgumentError as error:
        raise InvalidInput("The database's address cannot be read.", field="database_url", fix=_FIX) from error
    match address.get_backend_name():
        case "sqlite" if address.database and address.database != ":memory:":
            from seatrial.adapters.store_sql.sqlite import SqliteDatabase

            return SqliteDatabase(address.database)
        case "postgresql":
            from seatrial.adapters.store_sql.postgres import PostgresDatabase

            return PostgresDatabase(address.set(drivername="postgresql+asyncpg"), connections)
    shown = address.render_as_string(hide_password=True)
    raise InvalidInput(f"The store cannot be kept in {shown}.", field="database_url", fix=_FIX)
