"""What happened, and what running trials write."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from seatrial.domain.event import Event, NewEvent
from seatrial.domain.output import NewOutput, Output


class EventStore(Protocol):
    async def append(self, events: Sequence[NewEvent], now: datetime) -> None: ...

    async def events(
        self, after: int = 0, job_id: int | None = None, trial_id: int | None = None, limit: int = 500
    ) -> list[Event]:
        """In order of ``seq``. Whoever goes on from the last one it saw misses none: a lower number never appears
        after a higher one could be read."""
        ...

    async def last_event(self) -> int:
        """The number from which ``events`` goes on with what is yet to happen."""
        ...


class OutputStore(Protocol):
    """A bounded ring of live output for each running trial; what falls out is in the trial's files later."""

    async def append_output(self, pieces: Sequence[NewOutput], now: datetime) -> None:
        """Keeps the newest pieces of each trial; pieces of attempts that are over are dropped."""
        ...

    async def output(self, trial_ids: Sequence[int], after: int = 0, limit: int = 500) -> list[Output]:
        """In order of ``seq``, without gaps for whoever goes on from the last one seen, as ``events``."""
        ...

    async def drop_output(self, trial_ids: Sequence[int]) -> None: ...
