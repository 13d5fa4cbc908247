"""Tests of significance agree with enumeration, scipy and statsmodels."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests

from seatrial.domain.statistics.estimates import Passes
from seatrial.domain.statistics.significance import (
    TestKind,
    Variances,
    detectable_difference,
    estimate_variances,
    holm,
    mcnemar,
    sign_flip,
    usual_trials,
)

shares = st.builds(Fraction, st.integers(-6, 6), st.integers(1, 6))


@settings(max_examples=50)
@given(st.lists(shares, max_size=8))
@example([])
@example([Fraction(0)] * 4)
@example([Fraction(1, 3), Fraction(-1, 3), Fraction(1, 2)])
def test_exact_sign_flip_counts_every_pattern(differences: list[Fraction]) -> None:
    observed = abs(sum(differences))
    patterns = list(product((1, -1), repeat=len(differences)))
    extreme = sum(
        abs(sum(sign * size for sign, size in zip(signs, differences, strict=True))) >= observed for signs in patterns
    )
    found = sign_flip(differences)
    assert found.test is TestKind.SIGN_FLIP
    assert found.p == pytest.approx(extreme / len(patterns), rel=1e-12)
    assert found.smallest_p <= found.p + 1e-12


def test_exact_sign_flip_is_scipys_permutation_test() -> None:
    differences = [Fraction(n, 5) for n in (2, 1, -1, 3, 0, 1, 4, -2, 1, 1)]
    values = np.array([float(difference) for difference in differences])
    expected = stats.permutation_test((values,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
    assert sign_flip(differences).p == pytest.approx(float(expected))


def awkward(tasks: int) -> list[Fraction]:
    """Differences on so fine a common scale that their sums cannot all be listed."""
    return [Fraction(7 * index % 23 - 9, 29 + index) for index in range(tasks)]


def test_too_many_sums_are_drawn_with_a_seed_and_never_give_zero() -> None:
    found = sign_flip(awkward(40), seed=3)
    assert found.test is TestKind.SIGN_FLIP_DRAWN
    assert found.patterns == 9_999
    assert found == sign_flip(awkward(40), seed=3)
    assert sign_flip([Fraction(1, 29 + index) for index in range(60)]).p == pytest.approx(1 / 10_000)


def test_drawn_patterns_agree_with_the_normal_limit() -> None:
    differences = [float(difference) for difference in awkward(60)]
    z = abs(sum(differences)) / math.sqrt(sum(difference**2 for difference in differences))
    assert sign_flip(awkward(60)).p == pytest.approx(float(2 * stats.norm.sf(z)), abs=0.03)


def test_sign_flip_does_not_depend_on_order_or_on_which_side_is_a() -> None:
    for tasks in (9, 30):
        differences = awkward(tasks)
        p = sign_flip(differences).p
        assert sign_flip(differences[::-1]).p == p
        assert sign_flip([-difference for difference in differences]).p == p


def test_a_thousand_tasks_neither_overflow_nor_take_long() -> None:
    assert sign_flip([Fraction(1)] * 1200).p <= 1 / 10_000
    assert mcnemar(1200, 0).p < 1e-300


@given(st.integers(0, 60), st.integers(0, 60))
@example(0, 0)
def test_mcnemar_is_that_of_statsmodels_and_scipy(only_a: int, only_b: int) -> None:
    found = mcnemar(only_a, only_b)
    assert found.test is TestKind.MCNEMAR
    if only_a + only_b == 0:
        assert found.p == 1.0
        return
    assert found.p == pytest.approx(float(stats.binomtest(only_a, only_a + only_b, 0.5).pvalue))
    table = [[5, only_a], [only_b, 5]]
    assert found.p == pytest.approx(min(1.0, float(statsmodels_mcnemar(table, exact=True).pvalue)))


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 3))
def test_mcnemar_is_the_sign_flip_of_single_trials(only_a: int, only_b: int, both: int) -> None:
    differences = [Fraction(1)] * only_a + [Fraction(-1)] * only_b + [Fraction(0)] * both
    assert mcnemar(only_a, only_b).p == pytest.approx(sign_flip(differences).p)


@settings(max_examples=8)  # each call of theirs takes 50 ms
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))


def test_holm_of_nothing_is_nothing() -> None:
    assert holm([]) == []


def test_detectable_difference_is_the_formula() -> None:
    variances = Variances(between_tasks=0.05, within_a=0.1, within_b=0.2, assumed=False)
    expected = 2.8 * math.sqrt((0.05 + 0.1 / 5 + 0.2 / 10) / 89)
    assert detectable_difference(89, 5, 10, variances) == pytest.approx(expected)
    assert detectable_difference(0, 5, 5, variances) is None
    assert detectable_difference(1, 1, 1, Variances()) == 1.0


def test_detectable_difference_is_seen_four_times_in_five() -> None:
    """The formula keeps its promise: a difference of that size gives |z| > 1.96 in 80 % of simulated runs."""
    rng = np.random.default_rng(2)
    tasks, trials = 400, 4
    variances = Variances(between_tasks=0.0, within_a=0.21, within_b=0.21, assumed=False)
    detectable = detectable_difference(tasks, trials, trials, variances)
    assert detectable is not None
    runs = 2000
    a = rng.binomial(trials, 0.5 - 0.2, (runs, tasks)) / trials
    b = rng.binomial(trials, 0.5 - 0.2 + detectable, (runs, tasks)) / trials
    differences = b - a
    z = differences.mean(axis=1) / (differences.std(axis=1, ddof=1) / math.sqrt(tasks))
    assert float((np.abs(z) > 1.96).mean()) == pytest.approx(0.8, abs=0.05)


def test_variances_are_recovered_from_simulated_trials() -> None:
    rng = np.random.default_rng(4)
    chances = rng.uniform(0.2, 0.6, 4000)
    shift = rng.choice([-0.2, 0.4], 4000)  # mean 0.1, variance 0.09
    pairs = [
        (Passes(int(a), 5), Passes(int(b), 8))
        for a, b in zip(rng.binomial(5, chances), rng.binomial(8, chances + shift), strict=True)
    ]
    found = estimate_variances(pairs)
    assert not found.assumed
    assert found.between_tasks == pytest.approx(0.09, abs=0.01)
    assert found.within_a == pytest.approx(float((chances * (1 - chances)).mean()), abs=0.01)
    chances_b = chances + shift
    assert found.within_b == pytest.approx(float((chances_b * (1 - chances_b)).mean()), abs=0.01)


def test_single_trials_count_all_spread_as_between_tasks() -> None:
    pairs = [(Passes(1, 1), Passes(0, 1)), (Passes(0, 1), Passes(0, 1)), (Passes(1, 1), Passes(1, 1))]
    found = estimate_variances(pairs)
    assert (found.between_tasks, found.within_a, found.within_b) == pytest.approx((1 / 3, 0, 0))


@pytest.mark.parametrize("pairs", [[], [(Passes(1, 2), Passes(0, 2))], [(Passes(1, 2), Passes(1, 2))] * 5])
def test_without_spread_the_stated_defaults_hold(pairs: list[tuple[Passes, Passes]]) -> None:
    assert estimate_variances(pairs) == Variances(between_tasks=1 / 9, within_a=1 / 6, within_b=1 / 6, assumed=True)


def test_usual_trials_is_the_harmonic_mean() -> None:
    assert usual_trials([Passes(0, 2), Passes(0, 6)]) == pytest.approx(3.0)
