"""How many calls a model's provider takes at once: learned from its refusals, and shared out over all workers.

A provider is never limited before it refuses a call (429, or an overload with ``Retry-After``). From then on:

* a refusal lowers the limit, once per burst, and to what is still in flight when the burst of refusals is over;
* answers raise it: quickly while it is far below what worked, by one per round nearer to it, and slowly around the
  place of the last refusal, because a test that fails pauses everybody;
* ``Retry-After`` is a pause for all workers.

Each worker reports its calls every second or so and gets a number of slots that it may use until the next report. So no
call waits for the store, and the slots of a dead worker come back when its lease ends. Pure: the store passes in what
it holds, and keeps what it gets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from seatrial.domain.frozen import Frozen

DECREASE = 0.7
LONGEST_PAUSE_SEC = 600.0
_BURST_SEC = 1.0
_MOST_ANSWERS = 2_000
_FORGET_AFTER = timedelta(minutes=10)
"""A limit that was not nearly reached for this long is dropped."""


class PaceState(Frozen):
    """What is known about one provider and model. ``limit`` is ``None`` until the first refusal."""

    limit: float | None = None
    threshold: float = 0.0
    """Below this, the limit grows by one with each answer."""
    ceiling: float = 0.0
    """The limit at the last refusal."""
    paused_until: datetime | None = None
    refused_at: datetime | None = None
    """When the limit was last lowered."""
    burst_until: datetime | None = None
    """Further refusals before this belong to the same burst."""


class PaceReport(Frozen):
    """One worker's calls since its last report."""

    in_flight: int = 0
    waiting: int = 0
    answered: int = 0
    """Answers that came while the worker used most of its slots."""
    refused: int = 0
    peak: int = 0
    """Calls in flight at the first refusal."""
    low: int = 0
    """Calls in flight after the last refusal."""
    retry_after_sec: float = 0.0
    """The longest that the provider asked to wait."""

    @property
    def demand(self) -> int:
        return self.in_flight + self.waiting


class WorkerShare(Frozen):
    """What the store holds of one worker."""

    worker: str
    slots: int = 0
    in_flight: int = 0
    waiting: int = 0
    served_at: datetime
    """When it last had a call that was not refused. The store counts only workers whose lease has not ended."""

    @property
    def demand(self) -> int:
        return self.in_flight + self.waiting

    @property
    def taken(self) -> int:
        return max(self.slots, self.in_flight)


class PaceGrant(Frozen):
    """What a worker may do until its next report. ``slots`` is ``None`` if there is no limit."""

    slots: int | None = None
    pause_sec: float = 0.0


def exchange(
    state: PaceState, mine: WorkerShare, others: Sequence[WorkerShare], report: PaceReport, now: datetime
) -> tuple[PaceState, WorkerShare, PaceGrant]:
    """Learns from a worker's report and gives it its slots."""
    elsewhere = sum(other.in_flight for other in others)
    state = _grown(state, report.answered)
    if report.refused:
        state = _lowered(state, report.peak + elsewhere, report.low + elsewhere, report.retry_after_sec, now)
    demand = report.demand + sum(other.demand for other in others)
    state = _forgotten(state, demand, now)
    mine = mine.model_copy(update={"in_flight": report.in_flight, "waiting": report.waiting})
    pause = max(0.0, (state.paused_until - now).total_seconds()) if state.paused_until is not None else 0.0
    if state.limit is None:
        return state, mine.model_copy(update={"slots": 0, "served_at": now}), PaceGrant(pause_sec=pause)
    slots = slots_for(mine, others, max(1, int(state.limit)))
    served = now if report.in_flight or report.answered else mine.served_at
    mine = mine.model_copy(update={"slots": slots, "served_at": served})
    return state, mine, PaceGrant(slots=slots, pause_sec=pause)


def refused(state: PaceState, peak: int, low: int, retry_after_sec: float, now: datetime) -> PaceState:
    """What one worker assumes at once, before the others know."""
    return _lowered(state, peak, low, retry_after_sec, now)


def slots_for(mine: WorkerShare, others: Sequence[WorkerShare], limit: int) -> int:
    """This worker's part of the limit: proportional to what it and the others need, never what another one holds.

    Every worker that needs one has at least one slot. If there are fewer slots than such workers, those come first
    that were not served for the longest time."""
    needing = [other for other in others if other.demand]
    free = limit - sum(other.taken for other in others)
    total = mine.demand + sum(other.demand for other in others)
    if total <= limit:
        fair = mine.demand + (limit - total) // (len(others) + 1)
    elif limit <= len(needing):
        before = [other for other in needing if (other.served_at, other.worker) < (mine.served_at, mine.worker)]
        fair = 1 if mine.demand and len(before) < limit else 0
    else:
        fair = min(math.ceil(limit * mine.demand / total), limit - len(needing))
        fair = max(fair, 1) if mine.demand else 0
    return max(0, min(fair, free))


def _grown(state: PaceState, answers: int) -> PaceState:
    if state.limit is None or not answers:
        return state
    limit = state.limit
    for _ in range(min(answers, _MOST_ANSWERS)):
        limit += _step(limit, state)
    return state.model_copy(update={"limit": limit})


def _step(limit: float, state: PaceState) -> float:
    """How much one answer raises the limit."""
    if limit < state.threshold:
        return min(1.0, state.threshold - limit)
    if limit > 1.5 * state.ceiling:
        return 0.5
    near = state.ceiling - 1.5 <= limit <= state.ceiling + 1.0
    return (0.125 if near else 1.0) / limit


def _lowered(state: PaceState, peak: int, low: int, retry_after_sec: float, now: datetime) -> PaceState:
    pause = timedelta(seconds=min(max(retry_after_sec, 0.0), LONGEST_PAUSE_SEC))
    paused_until = max(state.paused_until or now, now + pause)
    update: dict[str, object] = {"paused_until": paused_until}
    known = float(peak) if state.limit is None else min(state.limit, float(max(peak, 1)))
    limit = known
    if state.limit is None or state.burst_until is None or now >= state.burst_until:
        limit = known * DECREASE
        burst_until = now + max(pause, timedelta(seconds=_BURST_SEC))
        update |= {"threshold": limit, "ceiling": known, "refused_at": now, "burst_until": burst_until}
    return state.model_copy(update=update | {"limit": max(1.0, min(limit, float(low)))})


def _forgotten(state: PaceState, demand: int, now: datetime) -> PaceState:
    if state.limit is None or state.refused_at is None or now - state.refused_at < _FORGET_AFTER:
        return state
    return PaceState() if demand < state.limit / 2 else state
