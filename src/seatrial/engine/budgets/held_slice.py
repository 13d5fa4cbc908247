"""A worker's slice of one cap: what it may still promise, and what it reports about it.

``trial_budget.py`` takes each call's price from the slices of its trial, its job and the day. No method waits.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field

from seatrial.domain.model_calls.budget import NOTHING, WITHOUT_CAP, Amount, Scope
from seatrial.domain.model_calls.budget_slices import SliceGrant, SliceReport


@dataclass(frozen=True, slots=True)
class Ask:
    """What one call needs. Tickets count up: the call with the smallest one has waited longest."""

    ticket: int
    since: float
    least: Amount
    expected: Amount
    most: Amount


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for room."""

    needs: Amount
    since: float
    woken: asyncio.Future[None]


@dataclass(eq=False)
class HeldSlice:
    """What this worker holds of one cap."""

    scope: Scope
    cap: Amount
    holder: str
    rank: int = 0
    """The number of the try, for the slice of a trial's cap."""
    spent: Amount = NOTHING
    """Everything spent from this slice since its holder was named."""
    promised: Amount = NOTHING
    in_flight: Amount = NOTHING
    users: set[int] = field(default_factory=set)
    """Trials that use it."""
    busy: dict[int, int] = field(default_factory=dict)
    """Calls under way, by trial."""
    waiting: dict[int, Waiting] = field(default_factory=dict)
    """By ticket. Only the first may take what comes, so that a large call is not starved by small ones."""
    is_dirty: bool = False
    told_at: float = -math.inf
    closed_at: float | None = None
    """When the store took the last report of a slice that no trial has open."""
    _ceiling: Amount = NOTHING
    _idle_to_keep: Amount = NOTHING
    _left: Amount | None = None
    _told_spent: Amount = NOTHING
    _valid_until: float = -math.inf
    _number: int = 0

    @property
    def is_capped(self) -> bool:
        return self.cap != WITHOUT_CAP

    def room(self, now: float) -> Amount:
        """What may still be promised. Nothing once the lease may be over, because another worker may have the slice."""
        if not self.is_capped:
            return WITHOUT_CAP
        return self._ceiling - self.spent - self.promised if self.is_trusted(now) else NOTHING

    def is_trusted(self, now: float) -> bool:
        """Whether the store answered recently, so that no other worker can have the slice."""
        return not self.is_capped or now < self._valid_until

    def left(self) -> Amount | None:
        """The most that can be left of the whole cap, by the store's last answer; ``None`` before the first."""
        return None if self._left is None else self._left - (self.spent - self._told_spent)

    def need(self, ask: Ask) -> Amount:
        """What the call must have here: what it is expected to cost or, near the cap, all that is left."""
        left = self.left()
        return ask.expected if left is None else ask.least.most(ask.expected.least(left))

    def is_spent(self, ask: Ask) -> bool:
        """Whether the cap has too little left for the call, whatever other calls give back."""
        left = self.left()
        return self.is_capped and left is not None and not left.covers(ask.least)

    def admits(self, ask: Ask, now: float) -> bool:
        if not self.is_capped:
            return True
        return self.is_turn_of(ask) and self.room(now).covers(self.need(ask))

    def is_turn_of(self, ask: Ask) -> bool:
        return ask.ticket <= min(self.waiting, default=ask.ticket)

    def wake_first(self) -> None:
        if self.waiting and not (first := self.waiting[min(self.waiting)].woken).done():
            first.set_result(None)

    def offer(self, ask: Ask, trial: int, now: float) -> Amount:
        """What the call may cost at most: a part of what is left, so that the calls of other trials get one, too."""
        idle = len(self.users) - len(self.busy) + (1 if trial in self.busy else 0)
        room = self.room(now)
        return ask.most.least(self.need(ask).most(room.part(max(1, idle)))).least(room)

    def promise(self, most: Amount, expected: Amount, trial: int) -> None:
        self.promised += most
        self.in_flight += expected
        self.busy[trial] = self.busy.get(trial, 0) + 1
        self.is_dirty = True

    def stretch(self, more: Amount) -> None:
        self.promised += more
        self.is_dirty = True

    def settle(self, most: Amount, expected: Amount, actual: Amount, trial: int) -> None:
        self.promised -= most
        self.in_flight -= expected
        self.spent += actual
        self.busy[trial] -= 1
        if not self.busy[trial]:
            del self.busy[trial]
        self.is_dirty = True

    def report(self, now: float, contact_sec: float) -> SliceReport:
        """What the store is told. First gives back what the store's last answer asked for."""
        keep = NOTHING if self.is_over else self._idle_to_keep
        self._ceiling = (self.spent + self.promised + keep).least(self._ceiling)
        self._number += 1
        self.is_dirty = False
        first = self.waiting[min(self.waiting)] if self.waiting else None
        return SliceReport(
            self.scope,
            self.holder,
            self._number,
            self.cap,
            self.spent,
            self.promised,
            self._ceiling - self.spent - self.promised,
            self.in_flight,
            first.needs if first is not None else NOTHING,
            max(0.0, now - first.since) if first is not None else 0.0,
            contact_sec,
            self.rank,
            self.is_over,
        )

    def apply(self, report: SliceReport, grant: SliceGrant | None, asked_at: float, valid_sec: float) -> None:
        """Applies the store's answer. ``asked_at`` is before the report was sent, so this lease ends before the
        store's. Without a grant the job was deleted."""
        self.told_at, self._valid_until = asked_at, asked_at + valid_sec
        self._told_spent = report.spent
        self._ceiling = report.spent + (grant.room if grant is not None else NOTHING)
        self._idle_to_keep = grant.idle if grant is not None else NOTHING
        self._left = grant.left if grant is not None else NOTHING
        self.closed_at = asked_at if report.closes and self.is_over and not self.is_dirty else None

    @property
    def is_over(self) -> bool:
        """Whether no trial uses it, and every call has ended."""
        return not self.users and not self.busy
