"""Wakes workers when there may be trials to claim. The store decides who gets them, so a lost or repeated wake-up does
no harm."""

from __future__ import annotations

from typing import Protocol


class WakeUp(Protocol):
    async def announce(self) -> None:
        """Tells the workers that there may be trials to claim."""

    async def wait(self, timeout: float) -> None:
        """Returns when work was announced, or after ``timeout`` seconds."""
