"""Workers in memory."""

from __future__ import annotations

from datetime import datetime

from seatrial.ports.store import Heartbeat, WorkerRow


class MemoryWorkers:
    def __init__(self) -> None:
        super().__init__()
        self._workers: dict[str, WorkerRow] = {}

    async def beat(self, heartbeat: Heartbeat, now: datetime) -> None:
        self._workers[heartbeat.worker] = WorkerRow(seen_at=now, **heartbeat.model_dump())

    async def workers(self, seen_since: datetime | None = None) -> list[WorkerRow]:
        rows = sorted(self._workers.values(), key=lambda row: row.worker)
        return [row for row in rows if seen_since is None or row.seen_at >= seen_since]

    async def forget_worker(self, worker: str) -> None:
        self._workers.pop(worker, None)
