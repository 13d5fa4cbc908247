"""The current time. Passed in wherever it matters, so that tests can set it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    return datetime.now(UTC)


def uptime() -> float:
    """Seconds that do not depend on the wall clock and also count while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class StoreClock:
    """The time of the database server, so that several machines judge leases by the same clock.

    Between two looks it counts with the monotonic clock, so that a change of this machine's clock has no effect.
    Before the first look it is the clock of this machine."""

    def __init__(self, own: Clock = system_clock, elapsed: Callable[[], float] = uptime) -> None:
        self._own = own
        self._elapsed = elapsed
        self._anchor: tuple[datetime, float] | None = None

    def __call__(self) -> datetime:
        if self._anchor is None:
            return self._own()
        told, at = self._anchor
        return told + timedelta(seconds=self._elapsed() - at)

    async def look(self, ask: Callable[[], Awaitable[datetime | None]]) -> None:
        """Sets the clock by ``ask``, which returns ``None`` if the store has no clock of its own."""
        asked = self._elapsed()
        told = await ask()
        answered = self._elapsed()
        self._anchor = None if told is None else (told, (asked + answered) / 2)
