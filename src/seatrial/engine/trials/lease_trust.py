"""Decides whether an expired lease means that its worker is gone.

It does only if the worker could have renewed it. Nobody can renew while the store is away, while the machine sleeps, or
when its clock is set. After each such event, workers get time to renew before their trials are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from seatrial.engine.clock import uptime


class LeaseTrust:
    """There is one per process that recovers trials. A new process waits first, because it knows nothing yet."""

    def __init__(
        self, lease_sec: float, heartbeat_sec: float, reap_sec: float, elapsed: Callable[[], float] = uptime
    ) -> None:
        self.grace_sec = lease_sec + heartbeat_sec
        self._longest_gap_sec = reap_sec + max(heartbeat_sec, lease_sec / 3)
        self._drift_sec = lease_sec / 3
        self._elapsed = elapsed
        self._last: tuple[float, datetime] | None = None
        self._since: float | None = None

    @property
    def holds(self) -> bool:
        return self._since is not None and self._elapsed() - self._since >= self.grace_sec

    def heard(self, now: datetime) -> None:
        """Notes that the store answered at this time."""
        moment = self._elapsed()
        if self._last is None or self._is_odd(moment, now, *self._last):
            self._since = moment
        self._last = (moment, now)

    def lost(self) -> None:
        """Notes that the store did not answer. Trust starts again with its next answer."""
        self._last = self._since = None

    def _is_odd(self, moment: float, now: datetime, last_moment: float, last_now: datetime) -> bool:
        passed = moment - last_moment
        jumped = abs((now - last_now).total_seconds() - passed)
        return passed > self._longest_gap_sec or jumped > self._drift_sec
