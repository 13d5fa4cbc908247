"""The store holds jobs, trials, tasks and events. Every implementation passes ``tests/contracts/store``.

Every implementation guarantees:

* A method takes effect entirely or not at all. Once it has returned, its effect survives a crash.
* ``claim`` gives a trial to exactly one of many concurrent callers.
* A write with a try number raises ``StaleTry`` after the trial was claimed again or has ended.
* Times are aware (UTC) and come from the caller, so that tests can set the clock.

All methods may raise ``StoreUnavailable``; ids that do not exist raise ``NotFound``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

from seatrial.domain.frozen import Frozen
from seatrial.ports.store.budgets import BudgetStore
from seatrial.ports.store.events import EventStore, OutputStore
from seatrial.ports.store.installation import (
    Backlog,
    DutyStore,
    Experience,
    Heartbeat,
    KeyStore,
    Overview,
    ProviderKey,
    TokenStore,
    TotalsStore,
    Trouble,
    WorkerRow,
    WorkerStore,
)
from seatrial.ports.store.jobs import (
    ConfigurationTotals,
    JobFilter,
    JobNumbers,
    JobStore,
    JobTotals,
    Once,
    Page,
    SpentTally,
    Tally,
)
from seatrial.ports.store.pace import PaceStore
from seatrial.ports.store.tasks import TaskStore
from seatrial.ports.store.triage import LinkStore, TriageStore
from seatrial.ports.store.trials import (
    FailedRow,
    Loss,
    PhaseEntry,
    RenewalReport,
    TrialFilter,
    TrialHistory,
    TrialNumbers,
    TrialRow,
    TrialStore,
    TrialSummary,
)

__all__ = [
    "Backlog",
    "BudgetStore",
    "ConfigurationTotals",
    "DutyStore",
    "EventStore",
    "Experience",
    "FailedRow",
    "Heartbeat",
    "JobFilter",
    "JobNumbers",
    "JobStore",
    "JobTotals",
    "KeyStore",
    "LinkStore",
    "Loss",
    "Once",
    "OutputStore",
    "Overview",
    "PaceStore",
    "Page",
    "PhaseEntry",
    "ProviderKey",
    "RenewalReport",
    "SpentTally",
    "Store",
    "StoreFacts",
    "Tally",
    "TaskStore",
    "TokenStore",
    "TotalsStore",
    "TriageStore",
    "TrialFilter",
    "TrialHistory",
    "TrialNumbers",
    "TrialRow",
    "TrialStore",
    "TrialSummary",
    "Trouble",
    "WorkerRow",
    "WorkerStore",
]


class StoreFacts(Frozen):
    kind: Literal["memory", "sqlite", "postgresql"]
    now: datetime | None = None
    """The time of the database server; ``None`` if there is no server."""
    connections: int | None = None
    """Connections of all clients to the server."""
    connections_allowed: int | None = None
    """Maximum that the server allows to ordinary clients."""
    connections_here: int | None = None
    """Maximum that this process opens."""

    @property
    def sentence(self) -> str:
        """The number of connections as a sentence; empty for SQLite."""
        if self.connections is None:
            return ""
        return (
            f"{self.connections} of {self.connections_allowed} connections in use; "
            f"this process opens up to {self.connections_here}."
        )


class Store(Protocol):
    """One port for each noun, all on the same data. Use with ``async with``."""

    @property
    def tasks(self) -> TaskStore: ...

    @property
    def jobs(self) -> JobStore: ...

    @property
    def trials(self) -> TrialStore: ...

    @property
    def events(self) -> EventStore: ...

    @property
    def output(self) -> OutputStore: ...

    @property
    def budgets(self) -> BudgetStore: ...

    @property
    def pace(self) -> PaceStore: ...

    @property
    def tokens(self) -> TokenStore: ...

    @property
    def provider_keys(self) -> KeyStore: ...

    @property
    def workers(self) -> WorkerStore: ...

    @property
    def duties(self) -> DutyStore: ...

    @property
    def totals(self) -> TotalsStore: ...

    @property
    def triage(self) -> TriageStore: ...

    @property
    def links(self) -> LinkStore: ...

    async def facts(self) -> StoreFacts:
        """Time and connections of the store now."""

    async def install_id(self) -> str:
        """A random id, created with the store. It marks the sandboxes and files of this installation."""

    async def __aenter__(self) -> Store: ...

    async def __aexit__(self, *exc: object) -> None: ...
