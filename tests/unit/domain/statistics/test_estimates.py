"""Every estimate agrees with an independent implementation, or with plain enumeration."""

from __future__ import annotations

import math
import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from seatrial.domain.statistics.estimates import (
    Method,
    Passes,
    _drawn_ends,
    _resampled_rates,
    fixed_tasks_interval,
    mean,
    paired_bootstrap,
    pass_at_k,
    pass_hat_k,
    quantile,
    quantiles,
    sample_variance,
    sampled_tasks_interval,
    wilson_interval,
)


@st.composite
def passes(draw: st.DrawFn, least: int = 1, most: int = 10) -> Passes:
    trials = draw(st.integers(least, most))
    return Passes(draw(st.integers(0, trials)), trials)


@given(passes(most=200))
@example(Passes(0, 1))
@example(Passes(5, 5))
def test_wilson_is_that_of_statsmodels(task: Passes) -> None:
    low, high = proportion_confint(task.passed, task.trials, alpha=0.05, method="wilson")
    found = wilson_interval(task)
    assert found is not None
    assert found.method is Method.WILSON
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert found.low <= task.rate <= found.high


def test_wilson_of_no_trial_is_not_available() -> None:
    assert wilson_interval(Passes(0, 0)) is None
    assert wilson_interval(Passes(0, 1)) is not None


@settings(max_examples=30)
@given(st.lists(passes(), min_size=20, max_size=40))
def test_t_interval_over_many_tasks_is_that_of_scipy(tasks: list[Passes]) -> None:
    rates = [task.passed / task.trials for task in tasks]
    centre, error = float(np.mean(rates)), float(stats.sem(rates))
    assume(2.001 * error < centre < 1 - 2.001 * error)
    low, high = stats.t.interval(0.95, len(rates) - 1, loc=centre, scale=error)
    found = sampled_tasks_interval(tasks)
    assert found is not None
    assert found.method is Method.T
    assert found.standard_error == pytest.approx(error)
    assert (found.low, found.high) == pytest.approx((max(0.0, low), min(1.0, high)))


@pytest.mark.parametrize(
    ("tasks", "method"),
    [
        ([Passes(1, 2)] * 10 + [Passes(1, 4)] * 9, Method.BOOTSTRAP),
        ([Passes(1, 2)] * 10 + [Passes(1, 4)] * 10, Method.T),
        ([Passes(0, 5)] * 58 + [Passes(5, 5)] * 2, Method.BOOTSTRAP),  # within 2 SE of 0
        ([Passes(5, 5)] * 58 + [Passes(0, 5)] * 2, Method.BOOTSTRAP),  # within 2 SE of 1
        ([Passes(0, 5)] * 40 + [Passes(5, 5)] * 20, Method.T),
    ],
)
def test_method_follows_the_size_and_the_edge(tasks: list[Passes], method: Method) -> None:
    found = sampled_tasks_interval(tasks)
    assert found is not None
    assert found.method is method


@pytest.mark.parametrize("tasks", [[], [Passes(3, 5)]])
def test_fewer_than_two_tasks_say_nothing_about_others(tasks: list[Passes]) -> None:
    assert sampled_tasks_interval(tasks) is None
    assert sampled_tasks_interval([*tasks, Passes(1, 5), Passes(2, 5)]) is not None


@pytest.mark.parametrize("passed", [0, 2, 4])
def test_tasks_that_are_all_alike_have_no_interval(passed: int) -> None:
    """Their spread is unknown; a width of 0 would claim certainty."""
    assert sampled_tasks_interval([Passes(passed, 4)] * 30) is None


def brute_bootstrap(tasks: list[Passes], resamples: int) -> tuple[float, float]:
    """The same bootstrap without any shortcut: draw tasks, then each trial of each task."""
    rng = np.random.default_rng(1)
    means = []
    for _ in range(resamples):
        rates = []
        for index in rng.integers(0, len(tasks), len(tasks)):
            passed, trials = tasks[index]
            outcomes = np.array([1] * passed + [0] * (trials - passed))
            rates.append(rng.choice(outcomes, trials).mean())
        means.append(np.mean(rates))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def test_bootstrap_agrees_with_drawing_every_trial() -> None:
    tasks = [
        Passes(0, 5),
        Passes(1, 3),
        Passes(2, 5),
        Passes(5, 5),
        Passes(4, 5),
        Passes(2, 5),
        Passes(3, 4),
        Passes(0, 2),
    ]
    found = sampled_tasks_interval(tasks)
    assert found is not None
    assert found.method is Method.BOOTSTRAP
    assert (found.low, found.high) == pytest.approx(brute_bootstrap(tasks, 2000), abs=0.03)


def test_summing_up_is_what_many_draws_come_to() -> None:
    tasks = [Passes(index % 6, 5) for index in range(11)]
    summed = sampled_tasks_interval(tasks)
    drawn = _drawn_ends(_resampled_rates(tasks), len(tasks), 1)
    assert summed is not None and (summed.low, summed.high) == pytest.approx(
        drawn, abs=1 / 55 + 1e-9
    )  # one step of the mean
    assert sampled_tasks_interval(tasks, seed=99) == summed


def test_bootstrap_agrees_with_the_normal_where_that_is_right() -> None:
    """19 tasks, each with many trials: the spread is that of the tasks, and the mean is close to normal."""
    rng = random.Random(5)
    tasks = [Passes(int(1000 * rng.uniform(0.3, 0.7)), 1000) for _ in range(19)]
    rates = np.array([task.rate for task in tasks])
    error = float(rates.std()) / math.sqrt(len(rates))  # the bootstrap's own variance has n, not n - 1, below
    found = sampled_tasks_interval(tasks)
    assert found is not None
    expected = (rates.mean() - 1.96 * error, rates.mean() + 1.96 * error)
    assert (found.low, found.high) == pytest.approx(expected, abs=0.15 * error * 2)


@settings(max_examples=10)
@given(st.lists(passes(), min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_the_interval_does_not_depend_on_the_order_of_tasks(tasks: list[Passes], rng: random.Random) -> None:
    shuffled = tasks[:]
    rng.shuffle(shuffled)
    assert sampled_tasks_interval(tasks) == sampled_tasks_interval(shuffled)
    assert fixed_tasks_interval(tasks) == fixed_tasks_interval(shuffled)


def test_the_seed_alone_decides_the_draws() -> None:
    """Only where the sums take too many values to be added up."""
    tasks = [Passes(index, 30 + index) for index in range(1, 15)]
    assert sampled_tasks_interval(tasks, seed=1) == sampled_tasks_interval(tasks, seed=1)
    assert any(
        sampled_tasks_interval(tasks, seed=1) != sampled_tasks_interval(tasks, seed=seed) for seed in range(2, 8)
    )


@settings(max_examples=15)
@given(st.lists(passes(), min_size=2, max_size=40))
def test_intervals_stay_within_bounds_and_hold_the_score(tasks: list[Passes]) -> None:
    centre = math.fsum(task.rate for task in tasks) / len(tasks)
    for found in (sampled_tasks_interval(tasks), fixed_tasks_interval(tasks)):
        if found is not None:
            assert 0.0 <= found.low <= centre + 1e-12
            assert centre - 1e-12 <= found.high <= 1.0


@given(st.lists(passes(least=2), min_size=1, max_size=20))
def test_fixed_tasks_interval_is_the_formula(tasks: list[Passes]) -> None:
    """The variance of each task's mean, as numpy sees it from the outcomes themselves."""
    variances = [np.var([1] * task.passed + [0] * (task.trials - task.passed), ddof=1) / task.trials for task in tasks]
    error = math.sqrt(sum(variances)) / len(tasks)
    found = fixed_tasks_interval(tasks)
    assert (found is None) == all(task.passed in (0, task.trials) for task in tasks)
    if found is None:
        return
    assert found.standard_error == pytest.approx(error, abs=1e-12)
    centre = float(np.mean([task.rate for task in tasks]))
    expected = (max(0.0, centre - 1.959964 * error), min(1.0, centre + 1.959964 * error))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-6)


def test_fixed_tasks_interval_needs_two_trials_of_every_task() -> None:
    assert fixed_tasks_interval([Passes(3, 5), Passes(1, 1)]) is None
    assert fixed_tasks_interval([]) is None
    assert fixed_tasks_interval([Passes(3, 5), Passes(1, 2)]) is not None


@given(passes(most=8), st.integers(1, 9))
def test_pass_at_k_and_pass_hat_k_are_shares_of_all_subsets(task: Passes, k: int) -> None:
    outcomes = [True] * task.passed + [False] * (task.trials - task.passed)
    subsets = list(combinations(outcomes, k))
    if not subsets:
        assert pass_at_k(task, k) is None
        assert pass_hat_k(task, k) is None
    else:
        assert pass_at_k(task, k) == pytest.approx(sum(any(subset) for subset in subsets) / len(subsets))
        assert pass_hat_k(task, k) == pytest.approx(sum(all(subset) for subset in subsets) / len(subsets))


numbers = st.floats(-1e6, 1e6)


@given(st.lists(numbers, min_size=1, max_size=50), st.floats(0, 1))
def test_quantile_is_that_of_numpy(values: list[float], share: float) -> None:
    assert quantile(values, share) == pytest.approx(float(np.quantile(values, share)), rel=1e-9, abs=1e-6)


@given(st.lists(numbers, min_size=2, max_size=50))
def test_quantiles_are_those_of_numpy(values: list[float]) -> None:
    found = quantiles(values)
    assert found is not None and found.values == len(values)
    shares = [0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0]
    mine = [found.p10, found.p25, found.p50, found.p75, found.p90, found.p99, found.largest]
    assert mine == pytest.approx([float(np.quantile(values, share)) for share in shares], rel=1e-9, abs=1e-6)
    assert quantiles([]) is None


def test_paired_bootstrap_is_that_of_scipy() -> None:
    """With one trial a side, resampling trials changes nothing: it is the bootstrap of the mean difference."""
    rng = random.Random(5)
    pairs = [(Passes(rng.random() < 0.6, 1), Passes(rng.random() < 0.4, 1)) for _ in range(60)]
    differences = np.array([one.passed - other.passed for one, other in pairs])
    expected = stats.bootstrap(
        (differences,), np.mean, n_resamples=20_000, method="percentile", random_state=3
    ).confidence_interval
    found = paired_bootstrap(pairs)
    assert found is not None and found.method is Method.BOOTSTRAP
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.02)


def test_paired_bootstrap_resamples_the_trials_of_both_sides() -> None:
    """By brute force, with other draws."""
    pairs = [
        (Passes(passed, 5), Passes(other, 4)) for passed, other in ((1, 1), (4, 2), (5, 4), (2, 3), (3, 1), (0, 2))
    ]
    rng = np.random.default_rng(2)
    means = []
    for _ in range(20_000):
        drawn = rng.integers(0, len(pairs), len(pairs))
        ends = [rng.binomial(5, pairs[i][0].rate) / 5 - rng.binomial(4, pairs[i][1].rate) / 4 for i in drawn]
        means.append(np.mean(ends))
    found = paired_bootstrap(pairs)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.02)
    assert paired_bootstrap(pairs[::-1]) == found, "the order of tasks does not matter"
    assert paired_bootstrap([(Passes(2, 4), Passes(1, 4))] * 9) is None


@given(st.lists(numbers, min_size=2, max_size=50))
def test_variance_is_that_of_numpy(values: list[float]) -> None:
    assert sample_variance(values) == pytest.approx(float(np.var(values, ddof=1)), rel=1e-6, abs=1e-3)


def test_equal_values_have_no_variance_at_all() -> None:
    assert sample_variance([0.1] * 3) == 0.0
    assert sample_variance([0.1]) is None
    assert mean([]) is None
    assert quantile([], 0.5) is None


def brute_paired(pairs: list[tuple[Passes, Passes]], draws: int) -> tuple[float, float]:
    """With numpy: tasks, then the trials of both sides."""
    rng = np.random.default_rng(3)
    trials, rates = (
        np.array([[getattr(side, name) for side in pair] for pair in pairs]) for name in ("trials", "rate")
    )
    means = []
    for _ in range(draws):
        chosen = rng.integers(0, len(pairs), len(pairs))
        drawn = rng.binomial(trials[chosen], rates[chosen]) / trials[chosen]
        means.append(float((drawn[:, 0] - drawn[:, 1]).mean()))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


@pytest.mark.parametrize("sizes", [(100, 100), (97, 100), (7, 3)], ids=["one-size", "odd-sizes", "few"])
def test_a_paired_bootstrap_over_many_trials_is_that_of_plain_draws(sizes: tuple[int, int]) -> None:
    """Blocks of tasks, and rates that are put on steps, change nothing that anybody could see."""
    rng = random.Random(8)
    pairs = [
        (Passes(rng.randint(0, one), one), Passes(rng.randint(0, other), other))
        for one, other in ((sizes[0] - index % 2, sizes[1]) for index in range(60))
    ]
    found = paired_bootstrap(pairs)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(brute_paired(pairs, 20_000), abs=0.004)
    assert paired_bootstrap(pairs) == found
    other_seed = paired_bootstrap(pairs, seed=7)
    assert other_seed is not None and other_seed.low == pytest.approx(found.low, abs=0.004)
