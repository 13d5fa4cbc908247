"""The store in memory: the simplest implementation of the ports, for tests.

Passes the same contract suite as the SQL store. It never awaits, so every method is atomic.
"""

from __future__ import annotations

import secrets
from typing import Self

from seatrial.ports.store import StoreFacts
from seatrial.testing.memory_store.budgets import MemoryBudgets
from seatrial.testing.memory_store.events import MemoryEvents, MemoryOutput
from seatrial.testing.memory_store.installation import (
    MemoryDuties,
    MemoryProviderKeys,
    MemoryTokens,
    MemoryTotals,
    MemoryWorkers,
)
from seatrial.testing.memory_store.jobs import MemoryJobs
from seatrial.testing.memory_store.pace import MemoryPace
from seatrial.testing.memory_store.records import MemoryRecords
from seatrial.testing.memory_store.tasks import MemoryTasks
from seatrial.testing.memory_store.triage import MemoryLinks, MemoryTriage
from seatrial.testing.memory_store.trials import MemoryTrials


class MemoryStore:
    """One part for each port. Those about jobs and trials share their records."""

    def __init__(self) -> None:
        self.records = records = MemoryRecords()
        self.tasks = MemoryTasks(records)
        self.jobs = MemoryJobs(records)
        self.trials = MemoryTrials(records)
        self.events = MemoryEvents(records)
        self.output = MemoryOutput(records)
        self.tokens = MemoryTokens()
        self.provider_keys = MemoryProviderKeys()
        self.workers = MemoryWorkers(records)
        self.duties = MemoryDuties()
        self.totals = MemoryTotals(records)
        self._install_id = secrets.token_hex(8)
        self.triage = MemoryTriage(records)
        self.links = MemoryLinks(records, self.tokens.all)
        self.pace = MemoryPace()
        self.budgets = MemoryBudgets(records.jobs)

    async def facts(self) -> StoreFacts:
        return StoreFacts(kind="memory")

    async def install_id(self) -> str:
        return self._install_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass
