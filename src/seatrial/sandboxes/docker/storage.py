"""The storage limit of a docker sandbox: the engine's quota where it has one, else somebody who looks.

``sandbox_container`` begins one for each running container. On the engine's machine the directories that the container
fills are watched as those of a daemonless sandbox without a disk of its own are (``host.storage``); elsewhere the
engine is asked now and then. Whoever fills more than allowed loses its processes, and the whole sandbox at twice as
much.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

from seatrial.errors import SandboxFault
from seatrial.sandboxes.docker.client import EngineClient
from seatrial.sandboxes.docker.container import Container
from seatrial.sandboxes.docker.layers import Layers
from seatrial.sandboxes.docker.sidecar import Sidecar
from seatrial.sandboxes.host.storage import Allowance, Exceeded, StorageWatch, TreeMeter, removal

ASK_SEC = 5.0
_LOG = logging.getLogger(__name__)


class Gauge(Protocol):
    """Looks at what one container fills, between ``begin`` and ``end``."""

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
        # Beside the container's own directory, which goes with it.
        self._watch = StorageWatch(layers.changes.parents[1])

    def begin(self, limit: int, exceeded: Exceeded) -> None:
        self._watch.add(self._name, TreeMeter(self._layers.written, self._processes, limit), limit, exceeded)

    async def end(self) -> None:
        self._watch.remove(self._name)
        self._watch.close()


class EngineGauge:
    """What the engine says. It counts what was written to the root, and no volumes."""

    def __init__(self, engine: EngineClient, name: str, interval_sec: float = ASK_SEC) -> None:
        self.description = f"storage: the engine is asked every {interval_sec:g} s, offenders are killed"
        self._engine = engine
        self._name = name
        self._interval_sec = interval_sec
        self._asking: asyncio.Task[None] | None = None

    def begin(self, limit: int, exceeded: Exceeded) -> None:
        self._asking = asyncio.create_task(self._ask(Allowance(limit, exceeded)))

    async def end(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self, allowance: Allowance) -> None:
        while True:
            await asyncio.sleep(self._interval_sec)
            try:
                found = await self._engine.get(f"/containers/{self._name}/json", size=True)
            except SandboxFault:  # whoever runs a command will hear of it
                continue
            allowance.judge(int(found.get("SizeRw") or 0))


class StorageLimit:
    """Holds one container to its limit."""

    def __init__(self, container: Container, sidecar: Callable[[], Sidecar], gauge: Gauge) -> None:
        self._container = container
        self._sidecar = sidecar
        self._gauge = gauge
        self._behind: set[asyncio.Task[None]] = set()
        self.exceeded_mb = 0
        self.removed_because = ""
        """Why there is no sandbox any more."""

    @property
    def description(self) -> str:
        return self._gauge.description

    def begin(self) -> None:
        self._gauge.begin(self._container.plan.storage_mb << 20, self._exceeded)

    async def end(self) -> None:
        await self._gauge.end()
        await self.settled()

    async def settled(self) -> None:
        """Waits until those who are to be killed are: a new command must not be among them."""
        await asyncio.gather(*self._behind, return_exceptions=True)

    def _exceeded(self, size: int, in_danger: bool) -> None:
        used, limit = size >> 20, self._container.plan.storage_mb
        self.exceeded_mb = max(used, self.exceeded_mb)
        if self.removed_because:
            return
        if in_danger:
            self.removed_because = removal(used, limit)
            self._do(self._container.remove())
        else:
            self._do(self._sidecar().kill_all())
        _LOG.warning("%d MB of disk used, %d MB allowed: the sandbox's processes are killed.", used, limit)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(_told(work))
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)


async def _told(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except (SandboxFault, TimeoutError) as error:
        _LOG.warning("A sandbox that fills the disk could not be stopped: %s", error)
