"""The current time. Passed in wherever it matters, so that tests can set it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from seatrial.errors import SetupProblem

FAR_OFF_SEC = 5.0
"""Clocks of machines that are set by the network differ by milliseconds."""

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
        self.ahead_sec = 0.0
        """By how much the clock of this machine was ahead of the store's at the last look."""

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
        if told is None:
            self._anchor, self.ahead_sec = None, 0.0
            return
        self._anchor = (told, (asked + answered) / 2)
        self.ahead_sec = (self._own() - self()).total_seconds()

    def require_near(self, far_off_sec: float = FAR_OFF_SEC) -> None:
        """Raises if the clock of this machine is far off. Nothing in Seatrial depends on it; files and logs carry its
        times, and TLS and cloud services may refuse them."""
        if abs(self.ahead_sec) < far_off_sec:
            return
        way = "ahead of" if self.ahead_sec > 0 else "behind"
        raise SetupProblem(
            f"The clock of this machine is {abs(self.ahead_sec):.0f} s {way} the database's.",
            fix="Let NTP set it. Leases and heartbeats go by the database's clock.",
        )
