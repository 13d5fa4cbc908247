"""A worker's slices of all caps, and its exchange with the store.

``domain/model_calls/budget_slices.py`` has the rules.
A store that does not answer stops calls with a cap once the lease of the slices is over: by then, others may have them.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import secrets
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from seatrial.domain.model_calls.budget import Amount, Cap, Scope
from seatrial.domain.model_calls.budget_slices import SliceGrant, SliceReport
from seatrial.engine.budgets.held_slice import Ask, HeldSlice, Waiting
from seatrial.engine.budgets.ledger import Ledgers
from seatrial.engine.clock import Clock, uptime
from seatrial.errors import StoreUnavailable
from seatrial.ports.store.budgets import BudgetStore

EVERY_SEC = 1.0
_AGAIN_SEC = 0.25
"""Pause between two requests for the same room."""
_SHORTEST_SEC = 0.001
"""The shortest wait. With less than the clock's smallest step, a call would wait forever."""
_ANSWER_SEC = 10.0
_TRUSTED_SEC = 5.0
"""How long a holder may begin calls after its last answered report. Much shorter than a lease: what it spends in this
time is unknown to the store, and lost if the worker dies."""
_REMEMBERED_SEC = 43_200.0
"""A worker remembers for half a day what it spent in a job that it has no trial of. The store remembers longer."""
_NO_CAP = Cap()


class Budgets:
    """One per worker process. Give ``sync`` to its duties, and call ``leave`` at its end."""

    def __init__(
        self,
        store: BudgetStore,
        worker: str,
        clock: Clock,
        lease: timedelta,
        day: Cap = _NO_CAP,
        elapsed: Callable[[], float] = uptime,
        ledgers: Ledgers | None = None,
    ) -> None:
        """``elapsed`` counts seconds, also while the machine sleeps. Without ``ledgers``, what was spent since the last
        report is lost with the process."""
        self._store = store
        name = secrets.token_hex(4)  # a process may have several, one after another, and each holder needs its own name
        self._holder = f"{worker}#{name}"
        self._ledger = ledgers.new(name) if ledgers is not None else None
        self._clock = clock
        self._lease = lease
        self._day = day.limits
        self.elapsed = elapsed
        self._slices: dict[tuple[str, int], HeldSlice] = {}
        self._numbers = itertools.count(1)
        self._exchanging = asyncio.Lock()
        self._begun = 0
        self._waits = 0
        """Calls that wait for room."""
        self._trusted_sec = min(_TRUSTED_SEC, lease.total_seconds() * 0.75)
        self._contact_since: float | None = None
        """Since when the store has answered every time, without long pauses."""
        self._answered_at = -math.inf

    def open_slice(self, scope: Scope, cap: Amount, trial_id: int, rank: int = 0) -> HeldSlice:
        """The slice of a scope. Each try of a trial has its own, because an earlier try may still be ending."""
        held = self._slices.get((scope.name, rank))
        if held is None:
            held = HeldSlice(scope, cap, f"{self._holder}.{next(self._numbers)}", rank)
            self._slices[scope.name, rank] = held
        held.users.add(trial_id)
        held.closed_at = None
        return held

    def day(self) -> tuple[Scope, Amount]:
        return Scope.of_day(self._clock()), self._day

    def next_ticket(self) -> int:
        return next(self._numbers)

    def note(self, slices: Iterable[HeldSlice]) -> None:
        """A call is about to be sent, or has ended."""
        if self._ledger is not None:
            for held in slices:
                self._ledger.write(held)

    def tell(self) -> None:
        """Wakes calls that wait for room. Runs after every call, and usually none waits: then it looks at no slice."""
        if self._waits:
            for held in self._slices.values():
                held.wake_first()

    async def sync(self) -> None:
        """One exchange with the store about whatever changed. Called every second."""
        async with self._exchanging:
            await self._exchange()

    async def leave(self) -> None:
        """Gives back all slices. Calls have ended by then."""
        for held in self._slices.values():
            held.users.clear()
            held.is_dirty = True
        await self.sync()
        if self._ledger is not None:
            self._ledger.remove()

    async def wait(self, ask: Ask, lacking: Sequence[HeldSlice], longest_sec: float, *, at_once: bool) -> None:
        """Waits for something that may help the call: the end of another call, or an exchange. The call that has waited
        longest asks the store, ``at_once`` or after a moment."""
        registered, woken = self._begun, asyncio.get_running_loop().create_future()
        for held in lacking:
            held.waiting[ask.ticket] = Waiting(held.need(ask), ask.since, woken)
        asks = any(held.is_turn_of(ask) for held in lacking)
        self._waits += 1
        try:
            if not (asks and at_once):
                longest_sec = max(longest_sec, _SHORTEST_SEC)
                await asyncio.wait([woken], timeout=min(longest_sec, _AGAIN_SEC) if asks else longest_sec)
            if asks and not woken.done():
                await self._refresh(registered)
        finally:
            self._waits -= 1
            for held in lacking:
                del held.waiting[ask.ticket]

    async def _refresh(self, registered: int) -> None:
        """Makes an exchange, unless one has begun since the call registered."""
        async with self._exchanging:
            if self._begun <= registered:
                with contextlib.suppress(StoreUnavailable, TimeoutError):  # ``sync`` reports it; the call waits
                    await self._exchange()

    async def _exchange(self) -> None:
        self._begun += 1
        asked_at = self.elapsed()
        if asked_at - self._answered_at > self._lease.total_seconds() / 2:
            self._contact_since = None  # an outage since then would not have been noticed
        contact_sec = 0.0 if self._contact_since is None else asked_at - self._contact_since
        due = [held for held in self._slices.values() if self._is_due(held, asked_at)]
        reports = [held.report(asked_at, contact_sec) for held in due]
        if reports:
            grants = await self._answer(due, reports)
            for held, report in zip(due, reports, strict=True):
                held.apply(report, grants.get(report.holder), asked_at, self._trusted_sec)
                if held.closed_at is not None and self._ledger is not None:
                    self._ledger.drop(held.holder)
            self.tell()
        for name in [name for name, held in self._slices.items() if self._is_forgotten(held, asked_at)]:
            del self._slices[name]

    async def _answer(self, due: Sequence[HeldSlice], reports: Sequence[SliceReport]) -> dict[str, SliceGrant]:
        try:
            async with asyncio.timeout(_ANSWER_SEC):
                grants = await self._store.exchange(reports, self._lease, self._clock())
        except BaseException:
            self._contact_since = None
            for held in due:
                held.is_dirty = True
            raise
        self._answered_at = self.elapsed()
        if self._contact_since is None:
            self._contact_since = self._answered_at
        return grants

    def _is_due(self, held: HeldSlice, now: float) -> bool:
        if held.closed_at is not None:
            return False
        holds = held.is_capped or bool(held.in_flight)
        is_late = holds and now - held.told_at > self._trusted_sec / 2
        return held.is_dirty or held.is_over or bool(held.waiting) or is_late

    def _is_forgotten(self, held: HeldSlice, now: float) -> bool:
        return held.closed_at is not None and (held.rank > 0 or now - held.closed_at > _REMEMBERED_SEC)
