"""When a worker leaves, and how its machine is protected while it holds trials.

A worker asks here before each claim, and whenever there was nothing to claim. The order makes sure that no scale-in
ends a trial: the platform confirms the protection, then the worker claims; the worker holds nothing any more, then it
gives the protection back. An idle worker above the minimum leaves by itself, so the autoscaler only has to add.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from seatrial.engine.clock import Clock
from seatrial.ports.platform import Notice, Notices, ScaleInProtection
from seatrial.ports.store import Store

log = logging.getLogger(__name__)

_RELEASE_AFTER_SEC = 30.0
"""An idle worker keeps its protection for this long, so that pauses between jobs cause no calls to the platform."""
_ASK_AGAIN_SEC = 30.0
"""A worker that had to stay asks again after this time."""


@dataclass(frozen=True, slots=True)
class StayRules:
    """When an idle worker leaves."""

    leave_when_idle_sec: float = 0.0
    """0 means never."""
    minimum_workers: int = 1
    """Live workers that stay even if they are idle."""
    lease: timedelta = timedelta(seconds=30)
    """A worker that was silent for longer does not count as live."""
    release_after_sec: float = _RELEASE_AFTER_SEC
    notice_sec: float = 5.0
    """How often to ask whether the machine must go. A spot machine has two minutes."""
    protection_sec: float = 10.0
    """How often to look whether the protection must be renewed."""


class Tenure:
    """One per worker. ``protection`` is ``None`` where no platform ends machines."""

    def __init__(
        self,
        worker: str,
        store: Store,
        clock: Clock,
        rules: StayRules,
        protection: ScaleInProtection | None = None,
        notices: Notices | None = None,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._worker = worker
        self._store = store
        self._clock = clock
        self._rules = rules
        self._protection = protection
        self._notices = notices
        self._elapsed = elapsed
        self._lock = asyncio.Lock()
        self._wants_protection = False
        self._is_protected = False
        self._may_be_protected = protection is not None
        """Also true if the last call failed, or an earlier process of this machine died while it was protected."""
        self._protected_at = 0.0
        self._idle_since: float | None = None
        self._ask_at = 0.0

    async def may_claim(self, holds: int) -> bool:
        """Protects the machine first. ``False`` if nothing waits; raises if the platform does not protect it."""
        if self._protection is None or self._is_protected:
            return True
        if not holds and not await self._store.trials.any_due(self._clock()):
            return False
        async with self._lock:
            self._wants_protection = True
            await self._protect(self._protection)
        return True

    def works(self) -> None:
        """The worker has claimed something."""
        self._idle_since = None

    async def should_leave(self, holds: int) -> bool:
        """Asked when there was nothing to claim. Gives the protection back if the worker holds nothing for a while.

        ``True`` means that the store has let this worker leave."""
        now = self._elapsed()
        if holds:
            self._idle_since = None
            return False
        if self._idle_since is None:
            self._idle_since = now
        idle = now - self._idle_since
        is_due = self._may_be_protected and idle >= self._rules.release_after_sec
        if is_due and not await self._store.trials.any_due(self._clock()):
            await self.release()
        return await self._may_leave(idle, now)

    async def _may_leave(self, idle: float, now: float) -> bool:
        rules = self._rules
        if not rules.leave_when_idle_sec or idle < rules.leave_when_idle_sec or now < self._ask_at:
            return False
        moment = self._clock()
        seen_since = moment - rules.lease
        if await self._store.workers.leave_if_spare(self._worker, rules.minimum_workers, seen_since, moment):
            log.info("The worker was idle for %.0f s and leaves.", idle)
            return True
        self._ask_at = now + min(_ASK_AGAIN_SEC, rules.leave_when_idle_sec)
        return False

    async def renew(self) -> None:
        """Repeats the protection in time. If that fails, the worker claims nothing until it succeeds."""
        protection = self._protection
        if protection is None or protection.renew_sec is None:
            return
        async with self._lock:
            age = self._elapsed() - self._protected_at
            if self._wants_protection and (not self._is_protected or age >= protection.renew_sec):
                await self._protect(protection)

    async def release(self) -> None:
        """Only for a worker that holds nothing."""
        async with self._lock:
            if self._protection is not None and self._may_be_protected:
                self._wants_protection = self._is_protected = False
                await self._protection.release()
                self._may_be_protected = False

    async def notice(self) -> Notice | None:
        """The platform's notice that this machine must go."""
        return await self._notices.look() if self._notices is not None else None

    @property
    def notice_sec(self) -> float | None:
        """How often to ask for a notice; ``None`` if there are none here."""
        return self._rules.notice_sec if self._notices is not None else None

    @property
    def protection_sec(self) -> float:
        return self._rules.protection_sec

    async def _protect(self, protection: ScaleInProtection) -> None:
        self._is_protected = False
        self._may_be_protected = True
        began = self._elapsed()
        await protection.protect()
        self._is_protected, self._protected_at = True, began
