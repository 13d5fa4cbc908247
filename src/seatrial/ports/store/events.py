"""The stores of events and of live output."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from seatrial.domain.event import Event, NewEvent
from seatrial.domain.output import NewOutput, Output


class EventStore(Protocol):
    async def append(self, events: Sequence[NewEvent], now: datetime) -> None: ...

    async def read(
        self, after: int = 0, job_id: int | None = None, trial_id: int | None = None, limit: int = 500
    ) -> list[Event]:
        """In order of ``seq``. A reader that continues after the last event it saw misses none, because a lower number
        never appears after a higher one."""

    async def last(self) -> int:
        """The number of the newest event."""


class OutputStore(Protocol):
    """A ring buffer of live output for each running trial. The saved files contain all output."""

    async def append(self, pieces: Sequence[NewOutput], now: datetime) -> None:
        """Keeps the newest pieces of each trial. Drops pieces of tries that are over."""

    async def read(self, trial_ids: Sequence[int], after: int = 0, limit: int = 500) -> list[Output]:
        """In order of ``seq``. As with the events, a reader that continues after the last one misses none."""

    async def drop(self, trial_ids: Sequence[int]) -> None: ...
