"""All of the store."""

from __future__ import annotations

from typing import Protocol

from seatrial.ports.store.access import KeyStore, TokenStore
from seatrial.ports.store.events import EventStore, OutputStore
from seatrial.ports.store.jobs import JobStore
from seatrial.ports.store.overview import OverviewStore
from seatrial.ports.store.tasks import TaskStore
from seatrial.ports.store.trials import TrialStore
from seatrial.ports.store.workers import WorkerStore


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

    async def install_id(self) -> str:
        """Random, made with the store: tells this installation's sandboxes and files from another's."""
        ...

    async def __aenter__(self) -> Store: ...

    async def __aexit__(self, *exc: object) -> None: ...
