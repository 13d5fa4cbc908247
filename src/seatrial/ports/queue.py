"""The queue is a hint that there is work; the store decides who gets it. A lost or doubled hint does no harm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Queue(Protocol):
    async def announce(self, trial_ids: Sequence[int]) -> None:
        """Tells the workers that these trials may be claimed."""
        ...

    async def wait(self, timeout: float) -> None:
        """Returns when work was announced, or after ``timeout`` seconds."""
        ...
