"""Estimates with their uncertainty. Used by ``score``, ``report`` and ``comparison``.

Pure numbers: no task names, outcomes or configurations. Too little data does not raise: a value that cannot be
estimated is ``None``, and the caller says why.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
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
SUMMED_STEPS = 500_000
"""Up to this many additions the bootstrap's distribution is summed up exactly; beyond, it is drawn from."""
SMALL_SAMPLE = 20
"""Below this number of tasks the t interval is not used."""


class Method(StrEnum):
    T = "t"
    BOOTSTRAP = "bootstrap"
    """Hierarchical: resamples tasks, then the trials of each. Exact where that is quick, otherwise drawn and seeded."""
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
    return _quantile(sorted(values), share) if values else None


class Quantiles(Frozen):
    """How values are spread. Linear interpolation between them."""

    values: int
    """How many there are."""
    p10: float
    p25: float
    p50: float
    p75: float
    p90: float
    p99: float
    largest: float


def quantiles(values: Sequence[float]) -> Quantiles | None:
    if not values:
        return None
    ordered = sorted(values)
    p10, p25, p50, p75, p90, p99 = (_quantile(ordered, share) for share in (0.1, 0.25, 0.5, 0.75, 0.9, 0.99))
    return Quantiles(values=len(ordered), p10=p10, p25=p25, p50=p50, p75=p75, p90=p90, p99=p99, largest=ordered[-1])


def _quantile(ordered: Sequence[float], share: float) -> float:
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


def paired_bootstrap(pairs: Sequence[tuple[Passes, Passes]], seed: int = SEED) -> Interval | None:
    """Interval of the mean difference of two sides on the same tasks: resamples tasks, then the trials of both sides.
    ``None`` if every task differs by the same amount."""
    differences = [float(one.minus(other)) for one, other in pairs]
    variance = sample_variance(differences)
    if not variance:
        return None
    return _resampled_interval(_resampled_differences(pairs), len(pairs), math.sqrt(variance / len(pairs)), seed)


def _bootstrap_interval(tasks: Sequence[Passes], standard_error: float, seed: int) -> Interval:
    return _resampled_interval(_resampled_rates(tasks), len(tasks), standard_error, seed)


type Chances = dict[Fraction, float]
"""Probability of each value."""


def _resampled_interval(chances: Chances, tasks: int, standard_error: float, seed: int) -> Interval:
    ends = _summed_ends(chances, tasks) or _drawn_ends(chances, tasks, seed)
    low, high = max(-1.0, ends[0]), min(1.0, ends[1])
    return Interval(low=low, high=high, method=Method.BOOTSTRAP, standard_error=standard_error)


def _resampled_rates(tasks: Sequence[Passes]) -> Chances:
    """Probability of each rate for a random task with resampled trials."""
    chances: Chances = {}
    for task, members in sorted(Counter(tasks).items()):  # sorted, so that the order of tasks does not matter
        for passed, chance in _resampled_passes(task):
            rate = Fraction(passed, max(1, task.trials))
            chances[rate] = chances.get(rate, 0.0) + members / len(tasks) * chance
    return chances


def _resampled_differences(pairs: Sequence[tuple[Passes, Passes]]) -> Chances:
    """Probability of each difference for a random task with resampled trials on both sides."""
    chances: Chances = {}
    for (one, other), members in sorted(Counter(pairs).items()):
        for passed_a, chance_a in _resampled_passes(one):
            for passed_b, chance_b in _resampled_passes(other):
                difference = Fraction(passed_a, one.trials) - Fraction(passed_b, other.trials)
                chance = members / len(pairs) * chance_a * chance_b
                chances[difference] = chances.get(difference, 0.0) + chance
    return chances


def _resampled_passes(task: Passes) -> list[tuple[int, float]]:
    if task.passed in (0, task.trials):
        return [(task.passed, 1.0)]
    return [(again, _binomial_chance(again, task.trials, task.rate)) for again in range(task.trials + 1)]


def _summed_ends(chances: Chances, tasks: int) -> tuple[float, float] | None:
    """The quantiles of the mean over so many tasks, from its exact distribution: what endless draws would give.
    ``None`` if the sums take too many values."""
    scale = math.lcm(*(value.denominator for value in chances))
    steps = {int(value * scale): chance for value, chance in chances.items()}
    lowest = min(steps)
    reach = max(steps) - lowest
    if len(steps) * reach * tasks * tasks > 2 * SUMMED_STEPS:
        return None
    terms = [(step - lowest, chance) for step, chance in sorted(steps.items())]
    sums = [1.0]
    for _ in range(tasks):
        grown = [0.0] * (len(sums) + reach)
        for shift, chance in terms:
            for place, known in enumerate(sums, start=shift):
                grown[place] += known * chance
        sums = grown
    below = list(accumulate(sums))
    ends = [bisect_left(below, share * below[-1] - 1e-12) for share in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)]
    low, high = ((lowest * tasks + end) / (scale * tasks) for end in ends)
    return low, high


def _drawn_ends(chances: Chances, tasks: int, seed: int) -> tuple[float, float]:
    rng = random.Random(seed)  # noqa: S311 - resampling, not secrecy
    rates = {float(value): chance for value, chance in chances.items()}
    means = sorted(_resampled_means(rates, tasks, rng))
    return _quantile(means, (1 - LEVEL) / 2), _quantile(means, (1 + LEVEL) / 2)


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
