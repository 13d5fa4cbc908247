"""Checks whether the service can work: tries each part that it needs, and names what is missing.

``/ready`` calls it. The checks cost time, so a good result is kept for a few seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from seatrial.domain.frozen import Frozen
from seatrial.engine.clock import Clock
from seatrial.errors import QueueUnavailable, SeatrialError, StoreUnavailable
from seatrial.ports.blobs import Blobs
from seatrial.ports.store import Store, WorkerRow
from seatrial.ports.wake_up import WakeUp

_PATIENCE_SEC = 5.0
_COUNTS_FOR_SEC = 5.0


class Part(Frozen):
    """One thing that the service needs."""

    name: str
    ok: bool
    detail: str = ""


@dataclass(eq=False)
class Readiness:
    """One per process, so that concurrent requests share one check."""

    store: Store
    wake_up: WakeUp
    blobs: Blobs
    clock: Clock
    probe_key: str
    """Only this process writes this key, to check whether files can be stored."""
    lease: timedelta
    worker_is_dead: Callable[[str], bool]
    shortage: Callable[[], str]
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _found: tuple[Part, ...] = ()
    _found_at: float = float("-inf")

    async def parts(self) -> tuple[Part, ...]:
        """Store, queue, files, disk and workers. Checked again after a few seconds, or at once if something failed."""
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if now - self._found_at > _COUNTS_FOR_SEC or not all(part.ok for part in self._found):
                self._found = tuple(
                    await asyncio.gather(
                        _tried("store", self._try_store),
                        _tried("queue", self._try_queue),
                        _tried("blobs", self._try_blobs),
                        _tried("disk", self._try_disk),
                        _tried("workers", self._try_workers),
                    )
                )
                self._found_at = now
            return self._found

    async def live_workers(self) -> list[WorkerRow]:
        """Workers whose last heartbeat is within their lease, and whose process is not known to be dead."""
        rows = await self.store.workers.all(seen_since=self.clock() - self.lease)
        return [row for row in rows if not self.worker_is_dead(row.worker)]

    async def _try_store(self) -> str:
        await self.store.totals.backlog(self.clock())
        return (await self.store.facts()).sentence

    async def _try_queue(self) -> str:
        """Without wake-ups the service still works, so it stays ready and says what is slower."""
        await self.wake_up.announce()
        try:
            await self.wake_up.tend()
        except QueueUnavailable as fault:
            return f"{fault}. Workers ask the store every second instead."
        return ""

    async def _try_blobs(self) -> None:
        written = self.clock().isoformat().encode()
        await self.blobs.put_bytes(self.probe_key, written)
        if await self.blobs.read(self.probe_key) != written:
            raise StoreUnavailable("The content that was read differs from the content that was written.")
        await self.blobs.delete(self.probe_key)

    async def _try_disk(self) -> None:
        if why := self.shortage():
            raise StoreUnavailable(why)

    async def _try_workers(self) -> str:
        live = await self.live_workers()
        able = [worker for worker in live if not worker.draining and not worker.paused]
        if able:
            return f"{len(able)} available"
        reasons = sorted({worker.paused for worker in live if worker.paused})
        if reasons:
            raise StoreUnavailable(f"All workers are paused: {' '.join(reasons)}")
        raise StoreUnavailable("All workers are draining." if live else "There is no worker.")


async def _tried(name: str, check: Callable[[], Awaitable[str | None]]) -> Part:
    try:
        async with asyncio.timeout(_PATIENCE_SEC):
            return Part(name=name, ok=True, detail=await check() or "")
    except TimeoutError:
        return Part(name=name, ok=False, detail=f"No answer within {_PATIENCE_SEC:g} s.")
    except (SeatrialError, OSError) as fault:
        return Part(name=name, ok=False, detail=str(fault))
