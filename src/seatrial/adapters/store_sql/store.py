"""The store: all store ports on one database. ``wiring`` opens it after ``migrate.upgrade``."""

from __future__ import annotations

from typing import Self

from seatrial.adapters.store_sql.database import CONNECTIONS, Database, database_at
from seatrial.adapters.store_sql.events import SqlEvents
from seatrial.adapters.store_sql.installation import SqlInstallation
from seatrial.adapters.store_sql.jobs import SqlJobs
from seatrial.adapters.store_sql.migrate import read_install_id, require_current
from seatrial.adapters.store_sql.output import SqlOutput
from seatrial.adapters.store_sql.specs import JobSpecs
from seatrial.adapters.store_sql.tasks import SqlTasks
from seatrial.adapters.store_sql.trials import SqlTrials
from seatrial.ports.store import StoreFacts


class SqlStore(SqlTasks, SqlJobs, SqlTrials, SqlEvents, SqlOutput, SqlInstallation):
    """``async with SqlStore.at(url) as store``. A process opens one only: it holds SQLite's writer thread and the
    connections to PostgreSQL."""

    def __init__(self, database: Database) -> None:
        SqlTrials.__init__(self, database, JobSpecs())
        SqlOutput.__init__(self, database)

    @classmethod
    def at(cls, url: str, connections: int = CONNECTIONS) -> Self:
        """``connections`` is the maximum number of connections to PostgreSQL. SQLite ignores it."""
        return cls(database_at(url, connections))

    async def facts(self) -> StoreFacts:
        return await self._database.facts()

    async def install_id(self) -> str:
        return await read_install_id(self._database)

    async def __aenter__(self) -> Self:
        try:
            await self._database.open()
            await require_current(self._database)
        except BaseException:
            await self._database.close()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._database.close()
