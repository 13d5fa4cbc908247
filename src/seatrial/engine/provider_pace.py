"""A worker's side of the pace of calls to providers. ``domain/model_calls/provider_pace.py`` has the rules.

Each call takes a turn first, and says at its end how it went. Without a limit, turns are only counted. Under a limit,
calls wait in order of arrival. Every second the worker reports to the store and gets its slots, for all providers at
once. If the store does not answer, the last slots stay.

It knows neither HTTP nor a model's client: the same turns serve agents in this process and a gateway.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass, field
from datetime import timedelta

from seatrial.domain.model_calls import provider_pace
from seatrial.domain.model_calls.provider_pace import PaceGrant, PaceReport, PaceState
from seatrial.engine.clock import Clock
from seatrial.ports.store.pace import PaceStore

EVERY_SEC = 1.0
_LEASE = timedelta(seconds=15)
_USED = 0.7
"""An answer raises the limit only if this part of the slots was in use."""
_IDLE_REPORTS = 30
"""Reports without a call after which a worker says no more about a provider."""


@dataclass(eq=False)
class Turn:
    """The turn of one call. Say ``answered`` or ``refused``, then ``end``; another ending does not change the pace."""

    waited_sec: float
    _lane: _Lane

    def end(self) -> None:
        self._lane.leave()

    def answered(self) -> None:
        self._lane.note_answer()

    def refused(self, retry_after_sec: float | None) -> None:
        """``retry_after_sec`` is what the provider asked for, and may be any number."""
        asked = 0.0 if retry_after_sec is None or math.isnan(retry_after_sec) else retry_after_sec
        self._lane.note_refusal(min(max(asked, 0.0), provider_pace.LONGEST_PAUSE_SEC))


class ProviderPace:
    """One per worker process."""

    def __init__(self, store: PaceStore, worker: str, clock: Clock) -> None:
        self._store = store
        self._worker = worker
        self._clock = clock
        self._lanes: dict[str, _Lane] = {}

    async def take(self, name: str) -> Turn:
        """Waits until the provider can take one more call. The turn lasts until its ``end``.

        ``name`` is that of the provider, the model and the account: calls that share a limit have the same one."""
        lane = self._lanes.setdefault(name, _Lane(self._clock))
        return Turn(await lane.enter(), lane)

    def served_since(self, name: str, moment: float) -> bool:
        """Whether the provider answered a call of this worker since then, by the loop's clock."""
        lane = self._lanes.get(name)
        return lane is not None and lane.answered_at >= moment

    async def sync(self) -> None:
        """One exchange with the store. Called every second; does nothing while no trial calls a model."""
        reports = {name: lane.report() for name, lane in self._lanes.items()}
        try:
            now = self._clock()
            grants = await self._store.exchange(self._worker, reports, _LEASE, now) if reports else {}
        except BaseException:
            for name, report in reports.items():
                self._lanes[name].take_back(report)
            raise
        for name, grant in grants.items():
            self._lanes[name].apply(grant)
        for name in [name for name, lane in self._lanes.items() if lane.is_idle]:
            del self._lanes[name]


@dataclass(eq=False)
class _Lane:
    """This worker's calls to one provider."""

    clock: Clock
    slots: int | None = None
    in_flight: int = 0
    answered_at: float = -math.inf
    _open_at: float = -math.inf
    _state: PaceState = field(default_factory=PaceState)
    _report: PaceReport = field(default_factory=PaceReport)
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    _opening: asyncio.TimerHandle | None = None
    _quiet: int = 0

    async def enter(self) -> float:
        """Returns the seconds that it took."""
        if not self._waiting and self._is_open():
            self.in_flight += 1
            return 0.0
        loop = asyncio.get_running_loop()
        began = loop.time()
        place = loop.create_future()
        self._waiting.append(place)
        self._let_in()
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():  # it was let in at the same moment
                self.leave()
            elif place in self._waiting:
                self._waiting.remove(place)
            raise
        return loop.time() - began

    def leave(self) -> None:
        self.in_flight -= 1
        self._let_in()

    def note_answer(self) -> None:
        self.answered_at = asyncio.get_running_loop().time()
        if self.slots is not None and self.in_flight >= _USED * self.slots:
            self._add(answered=self._report.answered + 1)

    def note_refusal(self, retry_after_sec: float) -> None:
        """Stops this worker's calls at once; the others learn of it with the next exchange."""
        report, low = self._report, max(0, self.in_flight - 1)
        peak = report.peak if report.refused else self.in_flight
        pause = max(report.retry_after_sec, retry_after_sec)
        self._add(refused=report.refused + 1, peak=peak, low=low, retry_after_sec=pause)
        limit = None if self.slots is None else float(max(1, self.slots))
        known = self._state.model_copy(update={"limit": limit})
        self._state = provider_pace.refused(known, peak, low, retry_after_sec, self.clock())
        self.slots = int(self._state.limit or 1)
        self._pause(retry_after_sec)

    def report(self) -> PaceReport:
        told = self._report.model_copy(update={"in_flight": self.in_flight, "waiting": len(self._waiting)})
        self._report = PaceReport()
        self._quiet = 0 if told.demand or told.answered or told.refused else self._quiet + 1
        return told

    def take_back(self, report: PaceReport) -> None:
        """Adds a report that the store did not get to the next one."""
        later = self._report
        first = report if report.refused else later
        self._report = PaceReport(
            answered=report.answered + later.answered,
            refused=report.refused + later.refused,
            peak=first.peak,
            low=later.low if later.refused else report.low,
            retry_after_sec=max(report.retry_after_sec, later.retry_after_sec),
        )

    def apply(self, grant: PaceGrant) -> None:
        if not self._report.refused:  # a refusal after the report is newer than the store's answer
            self.slots = grant.slots
            if grant.slots is None:
                self._state = PaceState()
        self._pause(grant.pause_sec)
        self._let_in()

    @property
    def is_idle(self) -> bool:
        return self._quiet >= _IDLE_REPORTS and not self.in_flight and not self._waiting

    def _add(self, **update: float) -> None:
        self._report = self._report.model_copy(update=update)

    def _is_open(self) -> bool:
        free = self.slots is None or self.in_flight < self.slots
        return free and asyncio.get_running_loop().time() >= self._open_at

    def _let_in(self) -> None:
        while self._waiting and self._is_open():
            place = self._waiting.popleft()
            if not place.cancelled():  # its call ends with the next turn of the loop
                self.in_flight += 1
                place.set_result(None)
        if self._waiting and self._opening is None:
            loop = asyncio.get_running_loop()
            if self._open_at > loop.time():
                self._opening = loop.call_at(self._open_at, self._opened)

    def _opened(self) -> None:
        self._opening = None
        self._let_in()

    def _pause(self, seconds: float) -> None:
        if seconds > 0:
            self._open_at = max(self._open_at, asyncio.get_running_loop().time() + seconds)
