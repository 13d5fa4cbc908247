"""Measures what a docker sandbox stores, for its ``StorageLimit``.

``sandbox_container`` starts one gauge for each running container. On the engine's machine it watches the directories
that the container fills, as for a daemonless sandbox without a disk of its own (``host.storage``). Elsewhere it asks
the engine at intervals. A sandbox over its limit loses its processes; at twice the limit it is removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from seatrial.engine.clock import system_clock
from seatrial.engine.duties import Duties
from seatrial.sandboxes.docker.client import EngineClient
from seatrial.sandboxes.docker.local_container import Layers
from seatrial.sandboxes.host.storage import Allowance, Exceeded, StorageWatch, TreeMeter

_INTERVAL_SEC = 5.0


class Gauge(Protocol):
    """Measures what one container stores, between ``begin`` and ``end``."""

    description: str

    def begin(self, limit: int, exceeded: Exceeded) -> None: ...

    async def end(self) -> None: ...


class LayersGauge:
    """The container's own directories."""

    description = "storage: watched, offenders are killed"

    def __init__(self, layers: Layers, name: str, processes: Callable[[], Iterable[int]]) -> None:
        """``processes`` are the sandbox's, as this machine counts them."""
        self._layers = layers
        self._name = name
        self._processes = processes
        # Beside the container's own directory, which is removed with it.
        self._watch = StorageWatch(layers.changes.parents[1])

    def begin(self, limit: int, exceeded: Exceeded) -> None:
        self._watch.add(self._name, TreeMeter(self._layers.written, self._processes, limit), limit, exceeded)

    async def end(self) -> None:
        self._watch.remove(self._name)
        self._watch.close()


class EngineGauge:
    """The engine's own count, which covers the root and no volumes."""

    description = f"storage: the engine is asked every {_INTERVAL_SEC:g} s, offenders are killed"

    def __init__(self, engine: EngineClient, name: str, interval_sec: float = _INTERVAL_SEC) -> None:
        self._engine = engine
        self._name = name
        self._interval_sec = interval_sec
        self._asking: asyncio.Task[None] | None = None

    def begin(self, limit: int, exceeded: Exceeded) -> None:
        allowance = Allowance(limit, exceeded)
        asking = Duties(system_clock).forever(
            f"storage of {self._name}", lambda: self._ask(allowance), self._interval_sec, later=True
        )
        self._asking = asyncio.create_task(asking)

    async def end(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self, allowance: Allowance) -> None:
        found = await self._engine.get(f"/containers/{self._name}/json", size=True)
        allowance.judge(int(found.get("SizeRw") or 0))
