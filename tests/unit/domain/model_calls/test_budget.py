"""Amounts are exact, figures that no call can cost are refused, and caps are said in words."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from seatrial.domain.model_calls.budget import (
    LARGEST_CAP,
    MOST,
    NOTHING,
    WITHOUT_CAP,
    Amount,
    Budget,
    Cap,
    Scope,
    shown_dollars,
)
from tests.properties import trying


def test_sums_of_prices_are_exact() -> None:
    assert sum((Amount.of(0.1) for _ in range(10)), start=NOTHING) == Amount.of(1.0)
    assert Amount.of(0.3).nanodollars == 300_000_000
    assert Amount.of(1.5e-10).nanodollars == 1, "the smallest price is something"
    assert Amount.of(0.0).nanodollars == 0


@pytest.mark.parametrize("dollars", [-0.01, math.nan, math.inf, -math.inf, 1e12])
def test_a_price_that_no_call_has_is_refused(dollars: float) -> None:
    """A provider's own figure may be anything. A negative one would raise everybody's budget."""
    with pytest.raises(ValueError, match="cannot cost"):
        Amount.of(dollars)
    assert Amount.of(0.01)


@pytest.mark.parametrize(("tokens", "calls"), [(-1, 1), (LARGEST_CAP + 1, 1), (1, -1), (1, LARGEST_CAP + 1)])
def test_counts_that_no_call_has_are_refused(tokens: int, calls: int) -> None:
    with pytest.raises(ValueError, match="cannot use"):
        Amount.of(0.0, tokens, calls)
    assert Amount.of(0.0, 1, 1)


@trying(100)
@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_price_is_never_counted_for_less(one: float, other: float) -> None:
    assert Amount.of(one).dollars >= one * (1 - 1e-12)
    low, high = sorted((one, other))
    assert Amount.of(high).covers(Amount.of(low))


def test_amounts_stay_within_the_integers_of_a_database() -> None:
    assert WITHOUT_CAP + WITHOUT_CAP == WITHOUT_CAP and NOTHING - WITHOUT_CAP == NOTHING
    assert Amount(MOST, 1, 0) + Amount(MOST, 1, 0) == Amount(MOST, 2, 0)


def test_each_kind_is_compared_by_itself() -> None:
    assert not Amount(9, 9, 0).covers(Amount(1, 1, 1)) and Amount(1, 1, 1).covers(Amount(1, 1, 1))
    assert Amount(1, 5, 3).least(Amount(2, 4, 3)) == Amount(1, 4, 3)
    assert Amount(1, 5, 3).most(Amount(2, 4, 3)) == Amount(2, 5, 3)


@pytest.mark.parametrize("wrong", [{"dollars": 0}, {"dollars": -1}, {"dollars": math.nan}, {"tokens": 0}, {"calls": 0}])
def test_a_cap_allows_something(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Cap.model_validate(wrong)


def test_caps_in_words() -> None:
    assert Budget(job=Cap(dollars=5, calls=1), trial=Cap(tokens=20_000)).words == (
        "$5.00, 1 call for the job; 20,000 tokens a trial"
    )
    assert Budget().words == "" and not Budget() and Budget(trial=Cap(calls=1))
    assert [shown_dollars(value) for value in (0, 1234.5, 0.25, 0.0004)] == ["$0.00", "$1,234.50", "$0.25", "$0.0004"]


def test_a_day_is_one_of_utc() -> None:
    evening = datetime(2026, 1, 1, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert Scope.of_day(evening) == Scope.of_day(datetime(2026, 1, 2, tzinfo=UTC))
    assert [Scope.of_trial(1, 2).kind, Scope.of_job(1).kind, Scope.of_day(evening).kind] == ["trial", "job", "day"]
