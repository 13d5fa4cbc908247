"""The store: one part for each port, all on one database. ``wiring`` opens it after ``migrate.upgrade``."""

from __future__ import annotations

from typing import Self

from seatrial.adapters.store_sql.budgets import SqlBudgets
from seatrial.adapters.store_sql.database import CONNECTIONS, Database, database_at
from seatrial.adapters.store_sql.events import SqlEvents
from seatrial.adapters.store_sql.installation import SqlProviderKeys, SqlTokens, SqlTotals
from seatrial.adapters.store_sql.jobs import SqlJobs
from seatrial.adapters.store_sql.links import SqlLinks
from seatrial.adapters.store_sql.migrate import read_install_id, require_current
from seatrial.adapters.store_sql.output import SqlOutput
from seatrial.adapters.store_sql.pace import SqlPace
from seatrial.adapters.store_sql.specs import JobSpecs
from seatrial.adapters.store_sql.tasks import SqlTasks
from seatrial.adapters.store_sql.triage import SqlTriage
from seatrial.adapters.store_sql.trials import SqlTrials
from seatrial.adapters.store_sql.workers import SqlDuties, SqlWorkers
from seatrial.ports.store import StoreFacts


class SqlStore:
    """``async with SqlStore.at(url) as store``. A process opens one only: it holds SQLite's writer thread and the
    connections to PostgreSQL. The parts share the database and the cache of specs; none calls another."""

    def __init__(self, database: Database) -> None:
        specs = JobSpecs()
        self._database = database
        self.tasks = SqlTasks(database)
        self.jobs = SqlJobs(database, specs)
        self.trials = SqlTrials(database, specs)
        self.events = SqlEvents(database)
        self.output = SqlOutput(database)
        self.tokens = SqlTokens(database)
        self.provider_keys = SqlProviderKeys(database)
        self.workers = SqlWorkers(database)
        self.duties = SqlDuties(database)
        self.totals = SqlTotals(database)
        self.triage = SqlTriage(database)
        self.links = SqlLinks(database)
        self.pace = SqlPace(database)
        self.budgets = SqlBudgets(database)

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
