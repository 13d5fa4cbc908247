"""The whole store."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

from seatrial.domain.frozen import Frozen
from seatrial.ports.store.access import KeyStore, TokenStore
from seatrial.ports.store.events import EventStore, OutputStore
from seatrial.ports.store.jobs import JobStore
from seatrial.ports.store.overview import OverviewStore
from seatrial.ports.store.tasks import TaskStore
from seatrial.ports.store.trials import TrialStore
from seatrial.ports.store.workers import WorkerStore


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


class Store(
    TaskStore,
    JobStore,
    TrialStore,
    EventStore,
    OutputStore,
    OverviewStore,
    TokenStore,
    KeyStore,
    WorkerStore,
    Protocol,
):
    """All store ports together. Use with ``async with``."""

    async def facts(self) -> StoreFacts:
        """Time and connections of the store now."""

    async def install_id(self) -> str:
        """A random id, created with the store. It marks the sandboxes and files of this installation."""

    async def __aenter__(self) -> Store: ...

    async def __aexit__(self, *exc: object) -> None: ...
