"""Hard budgets, as the gateway uses them: ``reserve`` before a call to a model, ``settle`` after it.

The price is taken from the trial's cap, its job's and the day's. The worker holds a slice of each, so a call does not
ask the store while the slices last. What a call may cost at most is counted from its start: if calls race for the last
cents, some have to wait or are refused. If nothing is free, but calls under way hold more than they will need, the next
call waits for them. It is refused only when a cap is spent.

It knows neither HTTP nor prices: the gateway says what a call is expected to cost, and what it did cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from seatrial.domain.model_calls.budget import MOST, NOTHING, WITHOUT_CAP, Amount, Budget, Scope
from seatrial.engine.budgets.held_slice import Ask, HeldSlice
from seatrial.engine.budgets.slices import Budgets

PATIENCE_SEC = 600.0
"""How long a call waits for room that other calls hold."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a call may not be made. ``kind`` is that of the cap, ``trial``, ``job`` or ``day``; or ``ended``."""

    kind: str
    cap: Amount = WITHOUT_CAP
    left: Amount = NOTHING
    waited_sec: float = 0.0
    is_spent: bool = True
    """False if the call waited for room as long as it could: other calls hold it, or the store is away."""

    @property
    def message(self) -> str:
        if self.kind == "ended":
            return "The trial has ended."
        whose = {"trial": "this trial", "job": "this job", "day": "this installation today"}[self.kind]
        if not self.is_spent:
            return f"Nothing of the budget of {whose} became free in {self.waited_sec:.0f} s."
        return f"The budget of {whose} is spent."


class BudgetUnknown(Exception):
    """The store has not answered for so long that nobody here knows what is left. No cap is known to be spent."""


class Reservation:
    """One call's part of the budgets. Ends with exactly one of ``settle``, ``settle_unknown`` and ``release``; the
    first of them counts. A call whose block is left without any of them is settled as unknown."""

    def __init__(self, owner: TrialBudget, slices: tuple[HeldSlice, ...], expected: Amount, most: Amount) -> None:
        self._owner = owner
        self._slices = slices
        self._expected = expected
        self.most = most
        """What the call may cost at most. Clamp its output to this."""
        self.is_settled = False
        self._used = NOTHING

    def stretch(self, used: Amount) -> bool:
        """Whether a stream that has cost this much may go on. Takes more of what is free. If it returns ``False``, cut
        the stream and settle it; the trial is over its budget. Raises ``BudgetUnknown``; then settle it, too."""
        if self.is_settled:
            return False
        self._used = used
        more = used - self.most
        if not more:
            return True
        free = self._owner.free(self._slices)
        if not free.covers(more):
            self._owner.cut(self._slices, more)
            return False
        ahead = self._expected.least(free)  # so that not every piece of the stream comes here again
        more = Amount(max(more.nanodollars, ahead.nanodollars), max(more.tokens, ahead.tokens), more.calls)
        for held in self._slices:
            held.stretch(more)
        self.most += more
        return True

    def settle(self, actual: Amount) -> None:
        """Counts what the call cost, even if it is more than was reserved."""
        if self.is_settled:
            return
        self.is_settled = True
        self._owner.settled(self, self._slices, self._expected, actual)

    def settle_unknown(self) -> None:
        """For a call whose connection broke before the provider told its price: counts what was expected, or what its
        stream had cost if that is more."""
        self.settle(self._expected.most(self._used))

    def release(self) -> None:
        """For a call that never reached the provider, or that it refused."""
        self.settle(NOTHING)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *exc: object) -> None:
        self.settle_unknown()


@dataclass(eq=False)
class TrialBudget:
    """What one try may spend. Use with ``with``: no reservation outlives it."""

    _budgets: Budgets
    trial_id: int
    try_number: int
    job_id: int
    _budget: Budget
    _counts_for_day: bool = True
    """False for a job whose calls the installation does not pay, because its caller chose the address of the model.
    That address could claim any price, and so use up everybody's day."""
    spent: Amount = NOTHING
    """By this try."""
    refused: Refused | None = None
    """Why a call was refused, or a stream cut, if one was: the trial is marked ``over_budget``."""
    _open: set[Reservation] = field(default_factory=set)
    _used: dict[str, HeldSlice] = field(default_factory=dict)
    _is_closed: bool = False

    def __post_init__(self) -> None:
        """The trial's own caps, which do not change from call to call. A trial without a cap has no slice: its result
        says what it spent."""
        of_job = (Scope.of_job(self.job_id), self._budget.job.limits, 0)
        of_trial = (Scope.of_trial(self.job_id, self.trial_id), self._budget.trial.limits, self.try_number)
        self._own = (of_trial, of_job) if self._budget.trial else (of_job,)

    async def reserve(
        self,
        expected: Amount,
        *,
        least: Amount | None = None,
        most: Amount | None = None,
        patience_sec: float = PATIENCE_SEC,
    ) -> Reservation | Refused:
        """Takes a call's price from all caps. Waits while calls under way hold what may come back.

        ``expected`` is its likely price, ``least`` its price with hardly any output, and ``most`` its price with all
        the output that it asks for. The call may cost what ``Reservation.most`` says."""
        budgets, began = self._budgets, self._budgets.elapsed()
        least = expected if least is None else least.least(expected)
        most = expected if most is None else most.most(expected)
        ask = Ask(budgets.next_ticket(), began, least, expected, most)
        asked: set[str] = set()
        try:
            while not self._is_closed:
                slices, waited = self._slices(), budgets.elapsed() - began
                spent = next((held for held in slices if held.is_spent(ask)), None)
                lacking = [held for held in slices if not held.admits(ask, budgets.elapsed())]
                if spent is None and not lacking:
                    return self._take(ask, slices)
                if spent is not None:
                    return self._refuse(spent, waited)
                if waited >= patience_sec:
                    return _refusal(lacking[0], waited, is_spent=False)
                names = {held.scope.name for held in lacking}
                is_new, asked = not names <= asked, asked | names
                await budgets.wait(ask, lacking, patience_sec - waited, at_once=is_new)
            return Refused("ended")
        finally:
            if asked:  # the calls behind it may have room now
                budgets.tell()

    def free(self, slices: tuple[HeldSlice, ...]) -> Amount:
        """What a call under way may still take. Raises ``BudgetUnknown``."""
        now, free = self._budgets.elapsed(), WITHOUT_CAP
        if not all(held.is_trusted(now) for held in slices):
            raise BudgetUnknown
        for held in slices:
            free = free.least(held.room(now))
        return free

    def settled(
        self, reservation: Reservation, slices: tuple[HeldSlice, ...], expected: Amount, actual: Amount
    ) -> None:
        for held in slices:
            held.settle(reservation.most, expected, actual, self.trial_id)
        self._budgets.note(slices)
        self.spent += actual
        self._open.discard(reservation)
        self._budgets.tell()

    def left(self) -> Amount:
        """What the trial may still spend, as far as this worker knows."""
        return self._left_of("trial", "job", "day")

    def own_left(self) -> Amount:
        """The same without the cap of the day, which would tell an agent what others spend."""
        return self._left_of("trial", "job")

    def _left_of(self, *kinds: str) -> Amount:
        left = WITHOUT_CAP
        for held in self._used.values() if self._is_closed else self._slices():
            if held.scope.kind in kinds:
                known = held.left()
                left = left.least(held.cap if known is None else known)
        return left

    @property
    def counts_tokens(self) -> bool:
        """Whether a cap is in dollars or tokens, so that the length of a call matters."""
        caps = () if self._is_closed else (held.cap for held in self._slices())
        return any(cap.nanodollars < MOST or cap.tokens < MOST for cap in caps)

    def cut(self, slices: tuple[HeldSlice, ...], more: Amount) -> None:
        """Records that a stream was cut because a cap is spent."""
        now = self._budgets.elapsed()
        self._refuse(next(held for held in slices if not held.room(now).covers(more)), 0.0)

    def __enter__(self) -> TrialBudget:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Settles what is open. A call that still waits for room is refused: it would never be settled."""
        self._is_closed = True
        for reservation in list(self._open):
            reservation.settle_unknown()
        for held in self._used.values():
            held.users.discard(self.trial_id)
            held.is_dirty = True
        self._used.clear()
        self._budgets.tell()

    def _slices(self) -> tuple[HeldSlice, ...]:
        """Of the trial, its job and today."""
        wanted = (*self._own, (*self._budgets.day(), 0)) if self._counts_for_day else self._own
        slices = tuple(self._budgets.open_slice(scope, cap, self.trial_id, rank) for scope, cap, rank in wanted)
        self._used.update((held.scope.name, held) for held in slices)
        return slices

    def _take(self, ask: Ask, slices: tuple[HeldSlice, ...]) -> Reservation:
        now, most = self._budgets.elapsed(), ask.most
        for held in slices:
            most = most.least(held.offer(ask, self.trial_id, now))
        expected = ask.expected.least(most)
        for held in slices:
            held.promise(most, expected, self.trial_id)
        self._budgets.note(slices)
        reservation = Reservation(self, slices, expected, most)
        self._open.add(reservation)
        return reservation

    def _refuse(self, held: HeldSlice, waited_sec: float) -> Refused:
        self.refused = _refusal(held, waited_sec, is_spent=True)
        return self.refused


def _refusal(held: HeldSlice, waited_sec: float, *, is_spent: bool) -> Refused:
    left = held.left()
    return Refused(held.scope.kind, held.cap, NOTHING if left is None else left, waited_sec, is_spent)
