"""SQLite: one writer thread that commits in groups, and a few readers beside it.

A whole operation runs on the writer's thread, so it needs one thread switch instead of one per statement. Operations
that arrive during a commit share the next one: hundreds of trials that end together need one flush to disk. This makes
``synchronous=FULL`` affordable.

Between processes a lock file orders the writers. SQLite itself sleeps and retries, which starves writers if a few
processes are busy. The kernel wakes a waiting process at once, and releases the lock of a killed one.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from seatrial.adapters.store_sql.database import Database
from seatrial.errors import SeatrialError, SetupProblem, StorageFull, StoreUnavailable
from seatrial.ports.store import StoreFacts
from seatrial.system.file_owner import act_for_owner, pass_every_folder

log = logging.getLogger(__name__)

_READERS = 2
_LARGEST_GROUP = 64
_BUSY_SEC = 30.0
"""How long to wait for a writer that does not use the lock file, such as a backup tool."""
_LONGEST_WAIT_SEC = 60.0
"""How long to wait for one that does. Only a process that is stopped during a write takes that long."""


@dataclass(slots=True)
class _Write:
    operation: Callable[[Connection], Any]
    durable: bool
    asked_by: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]
    result: Any = field(default=None)
    error: BaseException | None = field(default=None)

    def settle(self) -> None:
        if self.done.cancelled():
            return
        if self.error is not None:
            self.done.set_exception(self.error)
        else:
            self.done.set_result(self.result)


class SqliteDatabase(Database):
    """Opened once per process. Calls may come from any event loop."""

    groups_writes = True

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._writes: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._engine: Engine | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._writer: threading.Thread | None = None

    async def open(self) -> None:
        self._readers = ThreadPoolExecutor(_READERS, "store-read", self._settle)
        await asyncio.get_running_loop().run_in_executor(self._readers, self._open)

    async def close(self) -> None:
        """Finishes the queued writes, then closes the file."""
        if self._writer is not None:
            self._writes.put(None)
            await asyncio.to_thread(self._writer.join)
        if self._readers is not None:
            if self._engine is not None:
                await asyncio.get_running_loop().run_in_executor(self._readers, self._engine.dispose)
            await asyncio.to_thread(self._readers.shutdown)
        self._writer = self._readers = self._engine = None

    async def facts(self) -> StoreFacts:
        return StoreFacts(kind="sqlite")

    async def read[T](self, operation: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, operation)

    async def write[T](self, operation: Callable[[Connection], T], *, durable: bool = True) -> T:
        if self._writer is None:
            raise StoreUnavailable("The store is closed.")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._writes.put(_Write(operation, durable, loop, done))
        try:
            async with asyncio.timeout(_LONGEST_WAIT_SEC):
                return await done
        except TimeoutError as fault:
            raise StoreUnavailable(
                f"Another process has locked {self._path} for more than {_LONGEST_WAIT_SEC:.0f} seconds."
            ) from fault

    def _open(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._engine = _engine(self._path)
            connection = self._engine.connect()
            lock = self._path.with_name(self._path.name + "-writer").open("wb")
        except (OSError, SQLAlchemyError) as fault:
            raise _unavailable(self._path, fault) from fault
        self._writer = threading.Thread(target=self._serve, args=(connection, lock), name="store-write", daemon=True)
        self._writer.start()

    def _settle(self) -> None:
        """Each thread acts for the folder's owner: as root, SQLite would follow a link of his and give files away."""
        act_for_store(self._path)

    def _read[T](self, operation: Callable[[Connection], T]) -> T:
        if self._engine is None:
            raise StoreUnavailable("The store is closed.")
        try:
            with self._engine.connect() as connection:
                return operation(connection)
        except sa.exc.DatabaseError as fault:
            if not isinstance(fault, sa.exc.OperationalError) and not _is_damage(fault):
                raise
            raise _unavailable(self._path, fault) from fault

    def _serve(self, connection: Connection, lock: BinaryIO) -> None:
        """The writer's thread, until the queue says that it is over."""
        self._settle()
        with connection, lock:
            while group := self._next_group():
                self._commit(connection, lock, group)
                for loop in {write.asked_by for write in group}:
                    mine = [write for write in group if write.asked_by is loop]
                    with suppress(RuntimeError):  # that event loop has ended
                        loop.call_soon_threadsafe(_settle, mine)

    def _next_group(self) -> list[_Write]:
        group: list[_Write] = []
        write = self._writes.get()
        while write is not None:
            group.append(write)
            if len(group) == _LARGEST_GROUP or self._writes.empty():
                return group
            write = self._writes.get()
        if group:
            self._writes.put(None)
        return group

    def _commit(self, connection: Connection, lock: BinaryIO, group: list[_Write]) -> None:
        try:
            with _locked(lock):
                safety = "FULL" if any(write.durable for write in group) else "NORMAL"
                connection.exec_driver_sql(f"PRAGMA synchronous={safety}")
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                for write in group:
                    _run(connection, write)
                connection.exec_driver_sql("COMMIT")
        except Exception as fault:
            for write in group:
                write.error = _unavailable(self._path, fault)
            _roll_back(connection)


def act_for_store(path: Path) -> None:
    """For a thread that does nothing else than open this file."""
    with suppress(FileNotFoundError):  # the folder is made by this process, and so is its own
        act_for_owner(path.parent)
        try:
            path.parent.stat()
        except PermissionError:
            pass_every_folder()


def _run(connection: Connection, write: _Write) -> None:
    """Runs one operation of a group. If it raises, only its own changes are rolled back."""
    if write.done.cancelled():  # the caller was cancelled
        return
    connection.exec_driver_sql("SAVEPOINT operation")
    try:
        write.result = write.operation(connection)
    except sa.exc.OperationalError:  # the disk is full or broken; SQLite may have rolled back the whole group
        raise
    except Exception as refusal:
        if _is_damage(refusal):
            raise
        write.error = refusal
        connection.exec_driver_sql("ROLLBACK TO operation")
    connection.exec_driver_sql("RELEASE operation")


def _settle(group: list[_Write]) -> None:
    for write in group:
        write.settle()


def _roll_back(connection: Connection) -> None:
    """Never raises: it would end the thread, and nothing would be written any more. The next group tries it again."""
    try:
        connection.rollback()  # what SQLAlchemy knows of it; after this it opens a connection that broke again
        driver = connection.connection.driver_connection
        if isinstance(driver, sqlite3.Connection) and driver.in_transaction:
            driver.rollback()
    except Exception:
        log.exception("A transaction of the store could not be rolled back.")


def _engine(path: Path) -> Engine:
    """Transactions begin and end explicitly: the driver would begin them late and without the write lock."""
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        isolation_level="AUTOCOMMIT",
        connect_args={"timeout": _BUSY_SEC},
        pool_size=_READERS + 1,
        max_overflow=0,
    )

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA temp_store=MEMORY")

    return engine


@contextmanager
def _locked(lock: BinaryIO) -> Iterator[None]:
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)


def _is_damage(fault: Exception) -> bool:
    """Whether SQLite reports a damaged file."""
    reason = getattr(fault, "orig", None) or fault
    code = getattr(reason, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _unavailable(path: Path, fault: Exception) -> SeatrialError:
    reason = getattr(fault, "orig", None) or fault
    if _is_damage(fault):
        return SetupProblem(
            f"The database {path} is damaged: {reason}.",
            fix="Restore a backup: seatrial db restore FILE --force. The damaged file is kept beside it.",
        )
    if "disk is full" in str(reason):
        return StorageFull(f"There is no space left for the store {path}.")
    return StoreUnavailable(f"The store {path} did not answer: {reason}.")
