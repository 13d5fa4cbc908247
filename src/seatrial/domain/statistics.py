"""Estimates with their uncertainty. Used by ``score``, ``report`` and ``comparison``.

Pure numbers: no task names, outcomes or configurations. Too little data does not raise: a value that cannot be
estimated is ``None``, and the caller says why.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from seatrial.domain.distributions import normal_quantile, t_quantile
from seatrial.domain.frozen import Frozen

LEVEL = 0.95
SEED = 20_240_519
"""A fixed seed: the same trials give the same interval on every machine and in every order."""
RESAMPLES = 10_000
SMALL_SAMPLE = 20
"""Below this number of tasks the t interval is not used."""


class Method(StrEnum):
    T = "t"
    BOOTSTRAP = "bootstrap"
    """Hierarchical and seeded: resamples tasks, then the trials of each."""
    NORMAL = "normal"
    WILSON = "wilson"


class Interval(Frozen):
    """A confidence interval."""

    low: float
    high: float
    method: Method
    standard_error: float | None = None
    level: float = LEVEL
    note: str = ""
    """A caveat for the reader. Empty: an interval that needs one is not given."""

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


class Passes(NamedTuple):
    """Passed trials of one task."""

    passed: int
    trials: int

    @property
    def rate(self) -> float:
        return self.passed / self.trials if self.trials else 0.0

    def minus(self, other: Passes) -> Fraction:
        """The exact difference of the rates, so that equal differences compare equal."""
        return Fraction(self.passed, self.trials) - Fraction(other.passed, other.trials)


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def sample_variance(values: Sequence[float]) -> float | None:
    """With denominator n - 1; summed exactly, so that the order of values does not matter."""
    if len(values) < 2:
        return None
    if min(values) == max(values):
        return 0.0  # without rounding errors of the mean
    centre = math.fsum(values) / len(values)
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)


def quantile(values: Sequence[float], share: float) -> float | None:
    """Linear interpolation, as in numpy and spreadsheets."""
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def t_interval(
    centre: float, standard_error: float, freedom: int, *, lowest: float = 0.0, highest: float = 1.0
) -> Interval:
    reach = t_quantile((1 + LEVEL) / 2, freedom) * standard_error
    return Interval(
        low=max(lowest, centre - reach),
        high=min(highest, centre + reach),
        method=Method.T,
        standard_error=standard_error,
    )


def wilson_interval(passes: Passes) -> Interval | None:
    """For one share. Unlike the Wald interval it is reliable near 0 and 1 and with few trials."""
    passed, trials = passes
    if trials == 0:
        return None
    z = normal_quantile((1 + LEVEL) / 2)
    rate = passed / trials
    shrink = 1 + z * z / trials
    centre = (rate + z * z / (2 * trials)) / shrink
    reach = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / shrink
    low = 0.0 if passed == 0 else max(0.0, centre - reach)
    high = 1.0 if passed == trials else min(1.0, centre + reach)
    return Interval(low=low, high=high, method=Method.WILSON)


def sampled_tasks_interval(tasks: Sequence[Passes], seed: int = SEED) -> Interval | None:
    """Interval of the mean rate, with the tasks as a sample. Needs two tasks that differ: if all are alike, resampling
    them would claim certainty."""
    rates = [task.rate for task in tasks]
    centre, variance = mean(rates), sample_variance(rates)
    if centre is None or not variance:
        return None
    standard_error = math.sqrt(variance / len(tasks))
    near_edge = centre <= 2 * standard_error or 1 - centre <= 2 * standard_error
    if len(tasks) < SMALL_SAMPLE or near_edge:
        return _bootstrap_interval(tasks, standard_error, seed)
    return t_interval(centre, standard_error, len(tasks) - 1)


def fixed_tasks_interval(tasks: Sequence[Passes]) -> Interval | None:
    """Interval of the mean rate over these tasks only: how much another run would differ. Needs two trials of each
    task, and one task that both passed and failed."""
    if not tasks or any(task.trials < 2 for task in tasks):
        return None
    centre = math.fsum(task.rate for task in tasks) / len(tasks)
    spread = math.fsum(task.rate * (1 - task.rate) / (task.trials - 1) for task in tasks)
    if not spread:
        return None
    standard_error = math.sqrt(spread) / len(tasks)
    reach = normal_quantile((1 + LEVEL) / 2) * standard_error
    return Interval(
        low=max(0.0, centre - reach),
        high=min(1.0, centre + reach),
        method=Method.NORMAL,
        standard_error=standard_error,
    )


def pass_at_k(passes: Passes, k: int) -> float | None:
    """The probability that at least one of ``k`` trials passes; ``None`` with fewer than ``k`` trials."""
    if passes.trials < k:
        return None
    return 1.0 - math.comb(passes.trials - passes.passed, k) / math.comb(passes.trials, k)


def pass_hat_k(passes: Passes, k: int) -> float | None:
    """The probability that all of ``k`` trials pass; ``None`` with fewer than ``k`` trials."""
    if passes.trials < k:
        return None
    return math.comb(passes.passed, k) / math.comb(passes.trials, k)


def _bootstrap_interval(tasks: Sequence[Passes], standard_error: float, seed: int) -> Interval:
    rng = random.Random(seed)  # noqa: S311 - resampling, not secrecy
    means = _resampled_means(_resampled_rates(tasks), len(tasks), rng)
    low, high = quantile(means, (1 - LEVEL) / 2), quantile(means, (1 + LEVEL) / 2)
    assert low is not None and high is not None
    return Interval(low=low, high=min(1.0, high), method=Method.BOOTSTRAP, standard_error=standard_error)


def _resampled_rates(tasks: Sequence[Passes]) -> dict[float, float]:
    """Probability of each rate for a random task with resampled trials."""
    chances: dict[float, float] = {}
    for (passed, trials), members in sorted(
        Counter(tasks).items()
    ):  # sorted, so that the order of tasks does not matter
        share = members / len(tasks)
        if passed in (0, trials):
            rate = float(passed > 0)
            chances[rate] = chances.get(rate, 0.0) + share
            continue
        for again in range(trials + 1):
            rate = again / trials
            chances[rate] = chances.get(rate, 0.0) + share * _binomial_chance(again, trials, passed / trials)
    return chances


def _resampled_means(chances: dict[float, float], tasks: int, rng: random.Random) -> list[float]:
    """Means over as many tasks as given.

    The number of occurrences of the most likely rate is drawn at once, only the others one by one. With many tasks this
    is used near 0 or 1, where nearly all are alike.
    """
    usual = max(chances, key=chances.__getitem__)
    others = [rate for rate in chances if rate != usual]
    steps = list(accumulate(chances[rate] for rate in others))
    means = []
    for _ in range(RESAMPLES):
        different = rng.binomialvariate(tasks, min(1.0, steps[-1]))
        total = sum(rng.choices(others, cum_weights=steps, k=different))
        means.append((total + usual * (tasks - different)) / tasks)
    return means


def _binomial_chance(successes: int, trials: int, chance: float) -> float:
    ways = math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(trials - successes + 1)
    return math.exp(ways + successes * math.log(chance) + (trials - successes) * math.log1p(-chance))
