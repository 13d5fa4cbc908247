"""The queue is a hint that there is work; the store decides who gets it. A lost or doubled hint does no harm."""

from __future__ import annotations

from typing import Protocol


class Queue(Protocol):
    async def announce(self) -> None:
        """Tells the workers that there may be trials to claim."""
        ...

    async def wait(self, timeout: float) -> None:
        """Returns when work was announced, or after ``timeout`` seconds."""
        ...
