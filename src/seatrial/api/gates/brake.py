"""Slows down clients that guess tokens. Guessing 256 bits is hopeless; this limits its cost for the server."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable


class Brake:
    """Counts failures by address. Memory is bounded: the address with the oldest failure is dropped first."""

    def __init__(
        self,
        limit: int = 20,
        window_sec: float = 60.0,
        remembered: int = 4096,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = limit
        self._window = window_sec
        self._remembered = remembered
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Seconds until this address may try again; 0 if it may now."""
        count, since = self._failures.get(address, (0, 0.0))
        left = since + self._window - self._clock()
        return left if count >= self._limit and left > 0 else 0.0

    def failed(self, address: str) -> None:
        now = self._clock()
        count, since = self._failures.pop(address, (0, now))
        self._failures[address] = (count + 1, since) if now < since + self._window else (1, now)
        if len(self._failures) > self._remembered:
            self._failures.popitem(last=False)
