"""Wakes workers when there may be trials to claim. The store decides who gets them, so a lost, late or repeated wake-up
does no harm."""

from __future__ import annotations

from typing import Protocol

from seatrial.domain.trial import Trial
from seatrial.ports.store import Heartbeat


class WakeUp(Protocol):
    async def announce(self, trials: int = 1) -> None:
        """Tells workers that there may be this many trials to claim. Does not raise if no worker can be told: a worker
        that was not woken asks the store a moment later."""

    async def wait(self, timeout: float) -> None:
        """Returns when work was announced, or after ``timeout`` seconds."""

    def runs(self, trial: Trial) -> None:
        """A worker of this process runs the trial now. Tools of the queue may show it."""

    def ended(self, trial: Trial) -> None:
        """The worker runs it no more."""

    async def tend(self, about: Heartbeat | None = None) -> None:
        """Called every few seconds. Repairs what stopped, and publishes ``about``, the worker of this process.

        Raises ``QueueUnavailable`` while announcements do not arrive."""

    async def close(self) -> None: ...
