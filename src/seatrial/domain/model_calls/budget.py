"""What trials may spend on models: amounts, caps, and what a cap counts.

A cap holds for a trial over all its tries, for a job over all its trials, or for the whole installation on one day.
``domain/model_calls/budget_slices.py`` shares a cap out over workers. Pure: nothing here knows a store or a model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal

from pydantic import Field

from seatrial.domain.frozen import Frozen

MOST = 2**62
"""More than anything costs. It stands for *no cap*, and fits into the 64 bits of a database's integer."""
LARGEST_CAP_USD = 1e9
LARGEST_CAP = 10**15
"""Of tokens and calls."""
_NANO = 10**9


@dataclass(frozen=True, slots=True)
class Amount:
    """Money, tokens and model calls. All are whole numbers, so that sums of many calls are exact."""

    nanodollars: int = 0
    tokens: int = 0
    calls: int = 0

    @classmethod
    def of(cls, dollars: float = 0.0, tokens: int = 0, calls: int = 0) -> Amount:
        """Rounds dollars up. Raises ``ValueError`` for what no call can cost: a provider's own figure may be anything,
        and a negative one would raise a budget."""
        if not (math.isfinite(dollars) and 0 <= dollars <= LARGEST_CAP_USD):
            raise ValueError(f"a call cannot cost {dollars} dollars")
        if not (0 <= tokens <= LARGEST_CAP and 0 <= calls <= LARGEST_CAP):
            raise ValueError(f"a call cannot use {tokens} tokens or count {calls} times")
        exact = Decimal(repr(dollars)) * _NANO  # the float 0.3 is a little less than 0.3 dollars
        return cls(int(exact.to_integral_value(ROUND_CEILING)), tokens, calls)

    @property
    def dollars(self) -> float:
        return self.nanodollars / _NANO

    def __add__(self, other: Amount) -> Amount:
        """At most ``MOST`` of each."""
        return Amount(
            min(MOST, self.nanodollars + other.nanodollars),
            min(MOST, self.tokens + other.tokens),
            min(MOST, self.calls + other.calls),
        )

    def __sub__(self, other: Amount) -> Amount:
        """At least nothing of each."""
        return Amount(
            max(0, self.nanodollars - other.nanodollars),
            max(0, self.tokens - other.tokens),
            max(0, self.calls - other.calls),
        )

    def part(self, of: int) -> Amount:
        """One of ``of`` equal parts."""
        return Amount(self.nanodollars // of, self.tokens // of, self.calls // of)

    def least(self, other: Amount) -> Amount:
        """The smaller of each kind."""
        return Amount(
            min(self.nanodollars, other.nanodollars), min(self.tokens, other.tokens), min(self.calls, other.calls)
        )

    def most(self, other: Amount) -> Amount:
        """The larger of each kind."""
        return Amount(
            max(self.nanodollars, other.nanodollars), max(self.tokens, other.tokens), max(self.calls, other.calls)
        )

    def covers(self, other: Amount) -> bool:
        """Whether it is enough of each kind."""
        return self.nanodollars >= other.nanodollars and self.tokens >= other.tokens and self.calls >= other.calls

    def __bool__(self) -> bool:
        return bool(self.nanodollars or self.tokens or self.calls)


NOTHING = Amount()
WITHOUT_CAP = Amount(MOST, MOST, MOST)


class Cap(Frozen):
    """The most that may be spent on models. ``None``: no cap of this kind."""

    dollars: float | None = Field(default=None, gt=0, le=LARGEST_CAP_USD, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=1, le=LARGEST_CAP)
    """Input and output tokens together."""
    calls: int | None = Field(default=None, ge=1, le=LARGEST_CAP)
    """Calls to models, those that failed at the provider excluded."""

    @property
    def limits(self) -> Amount:
        dollars = MOST if self.dollars is None else Amount.of(self.dollars).nanodollars
        return Amount(dollars, MOST if self.tokens is None else self.tokens, MOST if self.calls is None else self.calls)

    def __bool__(self) -> bool:
        return self != Cap()

    @property
    def words(self) -> str:
        """``$5.00, 20,000 tokens``; empty without a cap."""
        dollars = "" if self.dollars is None else shown_dollars(self.dollars)
        counted = ((self.tokens, "token"), (self.calls, "call"))
        numbers = (f"{number:,} {unit}{'s' * (number != 1)}" for number, unit in counted if number is not None)
        return ", ".join(filter(None, (dollars, *numbers)))


class Budget(Frozen):
    """The caps of a job."""

    trial: Cap = Cap()
    """For each trial, over all its tries."""
    job: Cap = Cap()
    """For all trials of the job together."""

    @property
    def in_dollars(self) -> bool:
        return self.trial.dollars is not None or self.job.dollars is not None

    def __bool__(self) -> bool:
        return bool(self.trial or self.job)

    @property
    def words(self) -> str:
        """``$5.00 for the job, $0.50 for each trial``; empty without caps."""
        parts = (self.job.words and f"{self.job.words} for the job", self.trial.words and f"{self.trial.words} a trial")
        return "; ".join(filter(None, parts))


def shown_dollars(dollars: float) -> str:
    """Cents, or as many digits as a small amount needs."""
    return f"${dollars:,.2f}" if dollars >= 0.01 or dollars == 0 else f"${dollars:.2g}"


@dataclass(frozen=True, slots=True)
class Scope:
    """What one cap counts. Its name is its key in the store."""

    name: str
    job_id: int | None = None
    """The job that it is a part of, and is deleted with."""

    @classmethod
    def of_trial(cls, job_id: int, trial_id: int) -> Scope:
        return cls(f"trial:{trial_id}", job_id)

    @classmethod
    def of_job(cls, job_id: int) -> Scope:
        return cls(f"job:{job_id}", job_id)

    @classmethod
    def of_day(cls, moment: datetime) -> Scope:
        """The installation on one day, in UTC."""
        return cls(f"day:{moment.astimezone(UTC).date().isoformat()}")

    @property
    def kind(self) -> str:
        """``trial``, ``job`` or ``day``."""
        return self.name.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Spending:
    """What was spent in a scope so far."""

    spent: Amount = NOTHING
    in_flight: Amount = NOTHING
    """The expected price of calls that are under way."""
