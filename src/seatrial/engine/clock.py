"""What time it is. Passed in wherever it matters, so that tests hold it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    return datetime.now(UTC)


def uptime() -> float:
    """Seconds that no change of the wall clock touches, and that count while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class StoreClock:
    """The store's own time, where it has one: processes of several machines judge leases by the same clock.

    Goes on by itself between two looks, also when somebody sets this machine's clock. Without a look it is the
    machine's clock."""

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
        """``None`` means that the store has no clock of its own."""
        asked = self._elapsed()
        told = await ask()
        answered = self._elapsed()
        self._anchor = None if told is None else (told, (asked + answered) / 2)
