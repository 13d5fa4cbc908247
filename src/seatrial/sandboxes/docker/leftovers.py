"""Finds and removes containers of docker sandboxes whose process died, by their labels.

Workers sweep at their start and at intervals, with a predicate that knows the store's leases. Containers without our
labels are never touched, nor those whose process lives and whose trial has a lease.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from seatrial.domain.frozen import Frozen
from seatrial.errors import SeatrialError
from seatrial.sandboxes.docker.client import EngineClient
from seatrial.sandboxes.docker.container import LABEL_RECORD
from seatrial.sandboxes.record import Abandoned, SandboxRecord

_log = logging.getLogger(__name__)


class FoundContainer(Frozen):
    """A container of a sandbox, alive or not."""

    name: str
    record: SandboxRecord
    runs: bool = True

    @property
    def is_orphan(self) -> bool:
        """Whether its process is gone. Machines may share an engine, so another boot id alone proves nothing: a
        container that runs may belong to a worker elsewhere."""
        return self.record.process.is_dead or not (self.runs or self.record.process.lives)


class Leftovers:
    """All containers of docker sandboxes in one engine, of any process."""

    def __init__(self, engine: EngineClient) -> None:
        self._engine = engine

    @classmethod
    @asynccontextmanager
    async def at(cls, host: str) -> AsyncIterator[Leftovers]:
        async with EngineClient(host) as engine:
            yield cls(engine)

    async def containers(self) -> list[FoundContainer]:
        """All containers of sandboxes, alive or not."""
        entries = await self._engine.get("/containers/json", all=True, filters={"label": [LABEL_RECORD]})
        found = [_read(entry) for entry in entries]
        return [container for container in found if container is not None]

    async def sweep(self, abandoned: Abandoned | None = None) -> list[FoundContainer]:
        """Removes containers whose process is gone or that are abandoned, and returns those that it removed. Failures
        are logged, and found again by the next sweep."""
        doomed = [
            container
            for container in await self.containers()
            if container.is_orphan or (abandoned is not None and abandoned(container.record))
        ]
        # Sidecars first: they share the namespaces of the others.
        doomed.sort(key=lambda each: "sidecar" not in each.name)
        return [container for container in doomed if await self._is_removed(container)]

    async def _is_removed(self, container: FoundContainer) -> bool:
        try:
            await self._engine.remove_container(container.name)
        except (SeatrialError, OSError) as error:
            _log.warning("Leftover container %s could not be removed: %s", container.name, error)
            return False
        return True


def _read(entry: dict[str, Any]) -> FoundContainer | None:
    """``None`` if the label is not a valid record."""
    try:
        record = SandboxRecord.model_validate_json(entry["Labels"][LABEL_RECORD])
    except (KeyError, ValueError):
        return None
    return FoundContainer(name=entry["Names"][0].lstrip("/"), record=record, runs=entry.get("State") == "running")
