"""The distributions agree with scipy's, far into the tails."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from seatrial.domain.statistics.distributions import binomial_half_tail, normal_quantile, t_cdf, t_quantile

probabilities = st.floats(1e-9, 1 - 1e-9)
freedoms = st.one_of(st.integers(1, 200), st.integers(201, 100_000))


@given(probabilities, freedoms)
@example(0.975, 1)
@example(0.975, 19)
@example(0.975, 999)
@example(0.975, 1000)  # where the series takes over
@example(1e-9, 1000)
@example(0.5, 7)
def test_t_quantile_is_that_of_scipy(probability: float, freedom: int) -> None:
    expected = float(stats.t.ppf(probability, freedom))
    assert t_quantile(probability, freedom) == pytest.approx(expected, rel=1e-8, abs=1e-9)


@given(st.floats(-60, 60), freedoms)
def test_t_cdf_is_that_of_scipy(value: float, freedom: int) -> None:
    assert t_cdf(value, freedom) == pytest.approx(float(stats.t.cdf(value, freedom)), rel=1e-7, abs=1e-12)


@given(st.floats(1e-4, 0.9999), st.integers(1, 500))
def test_t_quantile_turns_t_cdf_around(probability: float, freedom: int) -> None:
    assert t_cdf(t_quantile(probability, freedom), freedom) == pytest.approx(probability, rel=1e-9)


@pytest.mark.parametrize(("probability", "freedom"), [(0.0, 5), (1.0, 5), (-0.1, 5), (0.5, 0)])
def test_t_quantile_refuses_what_has_no_answer(probability: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="t quantile"):
        t_quantile(probability, freedom)


@given(probabilities)
def test_normal_quantile_is_that_of_scipy(probability: float) -> None:
    assert normal_quantile(probability) == pytest.approx(float(stats.norm.ppf(probability)), rel=1e-9, abs=1e-12)


@given(st.integers(0, 300), st.data())
def test_binomial_tail_is_that_of_scipy(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(-1, trials))
    expected = float(stats.binom.cdf(successes, trials, 0.5))
    assert binomial_half_tail(successes, trials) == pytest.approx(expected, rel=1e-9, abs=1e-300)
