"""Axes: values at their place, round ticks inside, logarithmic only where it helps."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.charts.scale import amounts, shares


def test_shares_go_from_end_to_end() -> None:
    scale = shares(20, 120)
    assert [scale.at(value) for value in (0, 0.25, 1)] == [20, 45, 120]
    assert scale.at(7) == 120, "what is outside stays on the edge"
    assert scale.ticks() == pytest.approx((0, 0.2, 0.4, 0.6, 0.8, 1.0))


def test_a_scale_upwards_grows_from_bottom_to_top() -> None:
    assert shares(300, 0).at(0.5) == 150


def test_equal_and_missing_values_have_a_place() -> None:
    assert amounts([5.0, 5.0], 0, 108).at(5.0) == pytest.approx(100)
    assert amounts([0.0], 0, 100).at(0.0) == 0
    assert amounts([], 0, 100).ticks()


def test_orders_of_magnitude_get_a_logarithmic_axis() -> None:
    wide = amounts([0.02, 8.0], 0, 300)
    assert wide.logarithmic and (wide.low, wide.high) == (pytest.approx(0.01), 10)
    assert wide.at(0.1) == pytest.approx(100, abs=0.01)
    assert wide.ticks() == pytest.approx((0.01, 0.1, 1, 10))
    assert not amounts([0.0, 8.0], 0, 300).logarithmic, "zero has no logarithm"
    assert not amounts([1.0, 8.0], 0, 300).logarithmic


@given(st.lists(st.floats(min_value=0, max_value=1e9, allow_subnormal=False), min_size=1, max_size=8))
def test_every_value_and_tick_is_within_the_axis(values: list[float]) -> None:
    scale = amounts(values, 10, 500)
    places = [scale.at(value) for value in (*values, *scale.ticks())]
    assert all(math.isfinite(place) and 10 <= place <= 500 for place in places)
    assert len(scale.ticks()) <= 12
    ordered = sorted(values)
    assert [scale.at(value) for value in ordered] == sorted(scale.at(value) for value in ordered)
