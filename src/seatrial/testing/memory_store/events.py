"""The event log in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from seatrial.domain.event import Event, NewEvent
from seatrial.errors import NotFound
from seatrial.testing.memory_store.records import MemoryRecords


class MemoryEvents(MemoryRecords):
    async def append(self, events: Sequence[NewEvent], now: datetime) -> None:
        if any(event.job_id not in self._jobs for event in events):
            raise NotFound("An event tells of a job that does not exist.")
        for event in events:
            self._tell(event, now)

    async def events(
        self, after: int = 0, job_id: int | None = None, trial_id: int | None = None, limit: int = 500
    ) -> list[Event]:
        wanted = (
            event
            for event in self._events
            if event.seq > after and job_id in (None, event.job_id) and trial_id in (None, event.trial_id)
        )
        return list(wanted)[:limit]

    async def last_event(self) -> int:
        return self._last_seq
