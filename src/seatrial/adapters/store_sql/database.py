"""What the port modules see of a database: operations on one connection, each a transaction of its own.

An operation is a plain function that must be safe to run twice: PostgreSQL may ask for that after a deadlock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import ArgumentError

from seatrial.adapters.store_sql.sqlite import SqliteDatabase
from seatrial.errors import InvalidInput
from seatrial.ports.store import StoreFacts

CONNECTIONS = 5
"""To a server, of one process, where nothing else is said."""


class Database(Protocol):
    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def facts(self) -> StoreFacts: ...

    async def read[T](self, operation: Callable[[Connection], T]) -> T:
        """Runs it outside a transaction: each statement sees what was committed when it began."""
        ...

    async def write[T](self, operation: Callable[[Connection], T], *, durable: bool = True) -> T:
        """Runs it in one transaction and returns once that is committed.

        ``durable`` survives a power cut. Without it only a crash of this program is survived: enough for what a
        worker tells many times a minute, and far cheaper."""
        ...


def database_at(url: str, connections: int = CONNECTIONS) -> Database:
    """The database of a SQLAlchemy URL; not opened yet."""
    try:
        address = make_url(url)
    except ArgumentError as error:
        raise InvalidInput(
            "The database's address cannot be read.",
            field="database_url",
            fix="Use postgresql://user:password@host/name, or leave it empty for SQLite.",
        ) from error
    match address.get_backend_name():
        case "sqlite" if address.database and address.database != ":memory:":
            return SqliteDatabase(address.database)
        case "postgresql":
            from seatrial.adapters.store_sql.postgres import PostgresDatabase  # its driver is slow to import

            return PostgresDatabase(address.set(drivername="postgresql+asyncpg"), connections)
    raise InvalidInput(
        f"The store cannot be kept in {address.render_as_string(hide_password=True)}.",
        field="database_url",
        fix="Use postgresql://user:password@host/name, or leave it empty for SQLite.",
    )
