"""How long, and how often, a dropped stream reconnects."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx

from seatrial.client.refusals import unreachable

_FIRST_SEC, _LONGEST_SEC = 0.1, 2.0


class Resumption:
    """Gives up when the service has not been reached for ``patience`` seconds."""

    def __init__(self, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._clock = clock
        self._reached_at = clock()
        self._pause = _FIRST_SEC

    def reached(self) -> None:
        self._reached_at = self._clock()
        self._pause = _FIRST_SEC

    def refused(self, error: Exception, url: httpx.URL) -> None:
        """Raises once the patience has run out."""
        if self._clock() - self._reached_at < self._patience:
            return
        if isinstance(error, httpx.TransportError):
            raise unreachable(url, error) from error
        raise error

    def pause(self) -> float:
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST_SEC)
        return pause
