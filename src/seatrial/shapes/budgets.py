"""What was spent on models, by job and by day."""

from __future__ import annotations

import datetime as dt
from typing import Literal, Self

from seatrial.domain.model_calls.budget import Amount, Cap, Spending
from seatrial.engine.budgets.cap_usage import CapUsage
from seatrial.shapes.answers import Shape


class SpentAmount(Shape):
    dollars: float = 0.0
    tokens: int = 0
    """Input and output tokens together."""
    calls: int = 0

    @classmethod
    def of(cls, amount: Amount) -> Self:
        return cls(dollars=amount.dollars, tokens=amount.tokens, calls=amount.calls)

    @property
    def amount(self) -> Amount:
        return Amount.of(self.dollars, self.tokens, self.calls)


class Spent(Shape):
    """What went through the gateway for model calls so far. Workers report it about every second."""

    spent: SpentAmount = SpentAmount()
    in_flight: SpentAmount = SpentAmount()
    """The expected price of calls that are under way."""

    @classmethod
    def of(cls, spending: Spending) -> Self:
        return cls(spent=SpentAmount.of(spending.spent), in_flight=SpentAmount.of(spending.in_flight))


class CapState(Shape):
    """One cap, and what was spent of it."""

    of: Literal["trial", "job", "day"]
    cap: Cap
    spending: Spent

    @classmethod
    def of_usage(cls, usage: CapUsage) -> Self:
        return cls(of=usage.scope.kind, cap=usage.cap, spending=Spent.of(usage.spending))


class DayBudget(Shape):
    """What this installation has spent today, and its cap for a day."""

    day: dt.date
    """In UTC."""
    cap: Cap
    spending: Spent
