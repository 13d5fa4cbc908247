"""A wake-up that wakes nobody. It counts what was announced."""

from __future__ import annotations

import asyncio

from seatrial.domain.trial import Trial
from seatrial.ports.store import Heartbeat


class QuietWakeUp:
    def __init__(self) -> None:
        self.announced: list[int] = []
        """The number of trials of each announcement."""

    async def announce(self, trials: int = 1) -> None:
        self.announced.append(trials)

    async def wait(self, timeout: float) -> None:
        await asyncio.sleep(timeout)

    def runs(self, trial: Trial) -> None:
        pass

    def ended(self, trial: Trial) -> None:
        pass

    async def tend(self, about: Heartbeat | None = None) -> None:
        pass

    async def close(self) -> None:
        pass
