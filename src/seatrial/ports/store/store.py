"""All of the store."""

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
    """By the store's own clock; ``None`` where it has no clock but the caller's."""
    connections: int | None = None
    """Connections to the server that are in use, of all its clients."""
    connections_allowed: int | None = None
    """Most that the server allows to ordinary clients."""
    connections_here: int | None = None
    """Most that this process opens."""

    @property
    def sentence(self) -> str:
        """How many connections there are, for people; empty for a store that needs none."""
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
    """All of it; what ``wiring`` hands out. Used as ``async with``."""

    async def facts(self) -> StoreFacts:
        """How the store stands at this moment."""
        ...

    async def install_id(self) -> str:
        """Random, made with the store: tells this installation's sandboxes and files from another's."""
        ...

    async def __aenter__(self) -> Store: ...

    async def __aexit__(self, *exc: object) -> None: ...
