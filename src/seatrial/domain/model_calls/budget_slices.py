"""How workers share a cap: each holds a *slice*, and spends from it without asking.

Over all holders, what was spent and what the slices hold is never more than the cap. Therefore:

* A slice grows only by what no other worker holds. Only its holder makes it smaller: the answer to a report says how
  much to keep beyond the calls under way, and the holder gives the rest back with its next report. A store that took
  it back by itself would race with a call that begins at the same moment.
* Reports carry totals, not differences. A report that arrives twice, or after its sender gave up, counts once.
* A holder that has not reported for the length of its lease *lapses*: calls that it had reported under way are counted
  at their expected price, and the rest of its slice comes back. If it returns, the truth replaces that guess. It has
  nothing to spend until then: its own lease ends before the store's does. Only a worker that the store has answered
  for as long can say that others are silent: after an outage, all workers need a moment to report.
* A call that waits for room comes before idle slices, and the call that has waited longest comes first.

Pure: the store passes in what it holds, and keeps what it gets. ``engine/budgets`` is the holders' side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from seatrial.domain.model_calls.budget import NOTHING, Amount, Scope

_REMEMBERED = timedelta(days=1)
"""A slice that is over is known for this long, so that a late report of its holder counts once."""


@dataclass(frozen=True, slots=True)
class SliceReport:
    """What a holder tells about its slice."""

    scope: Scope
    holder: str
    """A name that is used once: a worker that opens a scope again has a new one."""
    number: int
    """Counts the holder's reports. One that arrives late is ignored."""
    cap: Amount
    spent: Amount
    """Everything that this holder has spent."""
    promised: Amount = NOTHING
    """The most that its calls under way may cost."""
    idle: Amount = NOTHING
    """What it keeps beyond that."""
    in_flight: Amount = NOTHING
    """What its calls under way are expected to cost."""
    needs: Amount = NOTHING
    """What the call needs that waits longest; nothing if none waits."""
    waited_sec: float = 0.0
    contact_sec: float = 0.0
    """How long the store has answered the holder every time."""
    rank: int = 0
    """Of a trial's tries: the number of the try. The newest has all; earlier ones lapse, and get nothing more."""
    closes: bool = False
    """The last report."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What the store holds of one holder."""

    holder: str
    expires_at: datetime
    number: int = 0
    reported: Amount = NOTHING
    room: Amount = NOTHING
    """What it may spend beyond ``reported``."""
    promised: Amount = NOTHING
    in_flight: Amount = NOTHING
    """Of a lapsed slice: what was counted as spent."""
    needs: Amount = NOTHING
    waits_since: datetime | None = None
    rank: int = 0
    lapsed: bool = False

    @property
    def idle(self) -> Amount:
        return self.room - self.promised


@dataclass(frozen=True, slots=True)
class SliceGrant:
    """The answer to a report."""

    room: Amount
    """What the holder may spend beyond the ``spent`` of its report."""
    idle: Amount
    """How much of it to keep beyond calls under way; the rest goes back with the next report."""
    left: Amount
    """The cap without what all holders have spent."""
    lapsed: bool = False
    """Nothing of the former slice is left but the calls under way."""


@dataclass(frozen=True, slots=True)
class ScopeState:
    """One scope in the store."""

    spent: Amount = NOTHING
    slices: tuple[Slice, ...] = ()


def exchange(state: ScopeState, report: SliceReport, lease: timedelta, now: datetime) -> tuple[ScopeState, SliceGrant]:
    """Takes one report, and returns what is known after it."""
    known = next((each for each in state.slices if each.holder == report.holder), None)
    if known is not None and report.number <= known.number:
        return state, SliceGrant(known.room, known.idle, report.cap - state.spent, known.lapsed)
    mine = known or Slice(report.holder, now)
    spent, others = _lapse(state, report, lease, now)
    if mine.lapsed:
        spent -= mine.in_flight
    spent += report.spent - mine.reported
    kept = report.promised + report.idle if known is not None and not known.lapsed else report.promised
    mine = Slice(
        report.holder,
        now if report.closes else now + lease,
        report.number,
        report.spent.most(mine.reported),
        NOTHING if report.closes else kept,
        NOTHING if report.closes else report.promised,
        NOTHING if report.closes else report.in_flight,
        NOTHING if report.closes else report.needs,
        now - timedelta(seconds=report.waited_sec) if report.needs and not report.closes else None,
        report.rank,
    )
    if any(other.rank > report.rank for other in others):
        gone = replace(mine, promised=NOTHING, room=NOTHING, needs=NOTHING, waits_since=None, lapsed=True)
        return ScopeState(spent + gone.in_flight, (*others, gone)), SliceGrant(report.promised, NOTHING, NOTHING, True)
    live = [other for other in others if other.room or (not other.lapsed and other.expires_at > now)]
    share = _share(report, spent, mine, live)
    if not report.closes:
        mine = replace(mine, room=mine.room + _more(report, spent, mine, live, share))
    grant = SliceGrant(mine.room, share, report.cap - spent, lapsed=known is not None and known.lapsed)
    return ScopeState(spent, (*others, mine)), grant


def in_flight(slices: Sequence[Slice]) -> Amount:
    return sum((each.in_flight for each in slices if not each.lapsed), start=NOTHING)


def _lapse(state: ScopeState, report: SliceReport, lease: timedelta, now: datetime) -> tuple[Amount, list[Slice]]:
    """The other slices. Counts what silent holders and earlier tries had under way, and takes their slices back."""
    spent, others = state.spent, []
    in_contact = report.contact_sec >= lease.total_seconds()
    for other in state.slices:
        is_over = other.lapsed or not (other.room or other.in_flight)
        if other.holder == report.holder or (is_over and other.expires_at <= now - _REMEMBERED):
            continue
        if not is_over and (other.rank < report.rank or (in_contact and other.expires_at <= now)):
            spent += other.in_flight
            other = replace(other, room=NOTHING, promised=NOTHING, needs=NOTHING, waits_since=None, lapsed=True)
        others.append(other)
    return spent, others


def _share(report: SliceReport, spent: Amount, mine: Slice, others: Sequence[Slice]) -> Amount:
    """What this holder should have beyond its calls under way: what its first waiting call needs, or a fair part of
    half of what is not yet promised. The other half is for holders that are yet to come.

    Calls that have waited longer come first. If they need more than half, idle slices go back to them, and others wait
    for what they leave: near the cap all that is left goes to one call, instead of a useless part to each."""
    pool = report.cap - spent - mine.promised - sum((other.promised for other in others), start=NOTHING)
    share = pool if report.rank else pool.part(2 * (len(others) + 1))
    ahead = sum((other.needs for other in _before(mine, others)), start=NOTHING)
    twice = ahead + ahead
    idle = Amount(
        share.nanodollars if twice.nanodollars <= pool.nanodollars else 0,
        share.tokens if twice.tokens <= pool.tokens else 0,
        share.calls if twice.calls <= pool.calls else 0,
    )
    return idle.most(report.needs).least(pool - ahead)


def _more(report: SliceReport, spent: Amount, mine: Slice, others: Sequence[Slice], share: Amount) -> Amount:
    """By how much the slice grows."""
    held = sum((other.room for other in others), start=NOTHING)
    unmet = sum((other.needs - other.idle for other in _before(mine, others)), start=NOTHING)
    free = report.cap - spent - held - mine.room - unmet
    return free.least(share - mine.idle)


def _before(mine: Slice, others: Sequence[Slice]) -> list[Slice]:
    """Those whose calls have waited longer than this holder's, which may have none."""
    return [
        other
        for other in others
        if other.waits_since is not None
        and (mine.waits_since is None or (other.waits_since, other.holder) < (mine.waits_since, mine.holder))
    ]
