"""Estimates with their uncertainty. Used by ``score``, ``report`` and ``comparison``.

Pure numbers: no task names, outcomes or configurations. Too little data does not raise: a value that cannot be
estimated is ``None``, and the caller says why.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from fractions import Fraction
from itertools import accumulate, chain
from typing import NamedTuple

from seatrial.domain.frozen import Frozen
from seatrial.domain.statistics.distributions import normal_quantile, t_quantile

LEVEL = 0.95
SEED = 20_240_519
"""A fixed seed: the same trials give the same interval on every machine and in every order."""
RESAMPLES = 10_000
SUMMED_STEPS = 500_000
"""Up to this many additions the bootstrap's distribution is summed up exactly; beyond, it is drawn from."""
BLOCK_STEPS = 700_000
"""Tasks are drawn in blocks that take up to about this many additions to sum up."""
MOST_STEPS, ROUGH_STEPS = 500, 240
"""A bootstrap with rates that have no common denominator up to 500 puts them on steps of 1/240: the mean stays, and the
width changes by less than one part in a thousand."""
NEGLIGIBLE = 1e-13
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
    steps = _steps_of_one(chain.from_iterable(pairs))
    return _resampled_interval(_resampled_differences(pairs, steps), len(pairs), math.sqrt(variance / len(pairs)), seed)


def _bootstrap_interval(tasks: Sequence[Passes], standard_error: float, seed: int) -> Interval:
    return _resampled_interval(_resampled_rates(tasks), len(tasks), standard_error, seed)


class Ladder(NamedTuple):
    """Probability of each value. Values are whole steps, ``steps`` of them make 1."""

    chances: dict[int, float]
    steps: int


def _resampled_interval(values: Ladder, tasks: int, standard_error: float, seed: int) -> Interval:
    ends = _summed_ends(values, tasks) or _drawn_ends(values, tasks, seed)
    low, high = max(-1.0, ends[0]), min(1.0, ends[1])
    return Interval(low=low, high=high, method=Method.BOOTSTRAP, standard_error=standard_error)


def _steps_of_one(tasks: Iterable[Passes]) -> int:
    """Steps on which every rate of resampled trials lies, or ``ROUGH_STEPS`` if that takes too many."""
    exact = math.lcm(*(task.trials for task in tasks if 0 < task.passed < task.trials))
    return exact if exact <= MOST_STEPS else ROUGH_STEPS


def _resampled_rates(tasks: Sequence[Passes]) -> Ladder:
    """Probability of each rate for a random task with resampled trials."""
    steps = _steps_of_one(tasks)
    chances: dict[int, float] = {}
    for task, members in sorted(Counter(tasks).items()):  # sorted, so that the order of tasks does not matter
        for step, chance in _on_steps(task, steps).items():
            chances[step] = chances.get(step, 0.0) + members / len(tasks) * chance
    return Ladder(chances, steps)


def _resampled_differences(pairs: Sequence[tuple[Passes, Passes]], steps: int) -> Ladder:
    """Probability of each difference for a random task with resampled trials on both sides."""
    found = [0.0] * (2 * steps + 1)
    for (one, other), members in sorted(Counter(pairs).items()):
        subtracted = _on_steps(other, steps).items()
        for step, chance in _on_steps(one, steps).items():
            share, top = members / len(pairs) * chance, step + steps
            for less, chance_less in subtracted:
                found[top - less] += share * chance_less
    return Ladder({place - steps: chance for place, chance in enumerate(found) if chance}, steps)


def _on_steps(task: Passes, steps: int) -> dict[int, float]:
    """Probability of each rate of resampled trials. Two steps share a rate between them, so that the mean stays."""
    chances: dict[int, float] = {}
    for passed, chance in _resampled_passes(task):
        below, rest = divmod(passed * steps, max(1, task.trials))
        upper = chance * rest / max(1, task.trials)
        chances[below] = chances.get(below, 0.0) + chance - upper
        if rest:
            chances[below + 1] = chances.get(below + 1, 0.0) + upper
    return chances


def _resampled_passes(task: Passes) -> list[tuple[int, float]]:
    if task.passed in (0, task.trials):
        return [(task.passed, 1.0)]
    found = ((again, _binomial_chance(again, task.trials, task.rate)) for again in range(task.trials + 1))
    return [(again, chance) for again, chance in found if chance > NEGLIGIBLE]


def _summed_ends(values: Ladder, tasks: int) -> tuple[float, float] | None:
    """The quantiles of the mean over ``tasks`` tasks, from its exact distribution: what endless draws would give.
    ``None`` if the sums take too many values."""
    lowest = min(values.chances)
    reach = max(values.chances) - lowest
    if len(values.chances) * reach * tasks * tasks > 2 * SUMMED_STEPS:
        return None
    single = _from_lowest(values)
    sums = [1.0]
    for _ in range(tasks):
        sums = _added(sums, single)
    below = list(accumulate(sums))
    ends = [bisect_left(below, share * below[-1] - 1e-12) for share in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)]
    low, high = ((lowest * tasks + end) / (values.steps * tasks) for end in ends)
    return low, high


def _from_lowest(values: Ladder) -> list[float]:
    """The chances as a list that begins with the lowest value."""
    lowest, highest = min(values.chances), max(values.chances)
    return [values.chances.get(step, 0.0) for step in range(lowest, highest + 1)]


def _added(some: Sequence[float], more: Sequence[float]) -> list[float]:
    """The distribution of the sum of two independent values."""
    grown = [0.0] * (len(some) + len(more) - 1)
    for shift, chance in enumerate(more):
        if chance:
            for place, known in enumerate(some, start=shift):
                grown[place] += known * chance
    return grown


def _drawn_ends(values: Ladder, tasks: int, seed: int) -> tuple[float, float]:
    """The quantiles of drawn means. Tasks are drawn by the block: the sum over a block is a single draw from its exact
    distribution."""
    lowest, block, size = min(values.chances), _from_lowest(values), 1
    while 2 * size <= tasks and len(block) ** 2 <= BLOCK_STEPS:
        block, size = _added(block, block), 2 * size
    rng = random.Random(seed)  # noqa: S311 - resampling, not secrecy
    blocks, singles = _Draws(block), _Draws(_from_lowest(values))
    whole, rest = divmod(tasks, size)
    drawn = sorted(blocks.sum_of(whole, rng) + singles.sum_of(rest, rng) for _ in range(RESAMPLES))
    low, high = (_quantile(drawn, share) for share in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return (low / tasks + lowest) / values.steps, (high / tasks + lowest) / values.steps


class _Draws:
    """Sums of several draws. The number of occurrences of the most likely value is drawn at once, only the others one
    by one: near 0 or 1 nearly all are alike."""

    def __init__(self, chances: Sequence[float]) -> None:
        self._usual = max(range(len(chances)), key=chances.__getitem__)
        self._others = [value for value, chance in enumerate(chances) if chance > NEGLIGIBLE and value != self._usual]
        self._weights = list(accumulate(chances[value] for value in self._others))
        self._unusual = min(1.0, self._weights[-1] / math.fsum(chances)) if self._weights else 0.0

    def sum_of(self, draws: int, rng: random.Random) -> int:
        different = rng.binomialvariate(draws, self._unusual) if draws else 0
        total = sum(rng.choices(self._others, cum_weights=self._weights, k=different)) if different else 0
        return total + self._usual * (draws - different)


def _binomial_chance(successes: int, trials: int, chance: float) -> float:
    ways = math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(trials - successes + 1)
    return math.exp(ways + successes * math.log(chance) + (trials - successes) * math.log1p(-chance))
