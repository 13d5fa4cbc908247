"""Significance tests and detectable differences. Used by ``comparison``.

Pure numbers. Every result names its test and how its p-value was computed.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction

from seatrial.domain.frozen import Frozen
from seatrial.domain.statistics.distributions import binomial_half_tail
from seatrial.domain.statistics.estimates import SEED, Passes, sample_variance

EXACT_STEPS = 500_000
"""Up to this many additions (well under a second) all sign patterns are counted; beyond, patterns are sampled."""
DRAWN_PATTERNS = 9_999
"""With the observed pattern this gives p-values in steps of 1/10,000."""
POWER_FACTOR = 1.96 + 0.84
"""Two-sided 5 % level, 80 % power."""


class TestKind(StrEnum):
    __test__ = False  # not a pytest class

    MCNEMAR = "exact McNemar"
    SIGN_FLIP = "exact sign-flip permutation"
    SIGN_FLIP_DRAWN = "sampled sign-flip permutation"


class Significance(Frozen):
    p: float
    test: TestKind
    patterns: int | None = None
    """Number of patterns that the sampled test drew."""
    smallest_p: float
    """The p-value if all differing tasks differed in the same direction."""


class Variances(Frozen):
    """Variance components of a measured difference. The defaults are for tasks without data."""

    between_tasks: float = 1 / 9
    """ω²: variance of the true difference between tasks."""
    within_a: float = 1 / 6
    """σ_A²: variance of one trial on one task. 1/6 is the mean of p(1 - p) for p uniform on 0 … 1."""
    within_b: float = 1 / 6
    assumed: bool = True
    """Whether these are the defaults and not estimates."""


def sign_flip(differences: Sequence[Fraction], seed: int = SEED) -> Significance:
    """Sign-flip permutation test: if A and B were equal, each task's difference could have either sign.

    p is the share of sign patterns whose sum is at least as far from 0 as the observed one. All patterns are counted if
    their sums take few enough values (as for shares of a few trials); otherwise patterns are sampled.
    """
    sizes = _whole_numbers(differences)
    smallest_p = min(1.0, 2 / 2 ** len(sizes))
    observed = abs(sum(sizes))
    sums = _pattern_sums(sorted(abs(size) for size in sizes))
    if sums is None:
        p = _drawn_p(sizes, observed, seed)
        return Significance(p=p, test=TestKind.SIGN_FLIP_DRAWN, patterns=DRAWN_PATTERNS, smallest_p=smallest_p)
    extreme = sum(ways for total, ways in sums.items() if abs(total) >= observed)
    return Significance(p=extreme / 2 ** len(sizes), test=TestKind.SIGN_FLIP, smallest_p=smallest_p)


def mcnemar(only_a: int, only_b: int) -> Significance:
    """McNemar's exact test, for one trial per side: is the split uneven among tasks that only one side passed?"""
    discordant = only_a + only_b
    p = min(1.0, 2 * binomial_half_tail(min(only_a, only_b), discordant))
    return Significance(p=p, test=TestKind.MCNEMAR, smallest_p=min(1.0, 2 / 2**discordant))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm-adjusted p-values in the given order; the family-wise error rate is 5 %."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    reached = 0.0
    for rank, index in enumerate(order):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = reached
    return adjusted


def estimate_variances(pairs: Sequence[tuple[Passes, Passes]]) -> Variances:
    """Estimates from trials of both sides on the same tasks; the defaults if the trials show no spread.

    With single trials, the variance within tasks cannot be separated from that between tasks. All of it then counts as
    ``between_tasks``, which gives the same detectable difference for the same number of trials.
    """
    spread = sample_variance([float(a.minus(b)) for a, b in pairs])
    if not spread:
        return Variances()
    within_a, within_b = (_within(side) for side in zip(*pairs, strict=True))
    if within_a is None or within_b is None:
        return Variances(between_tasks=spread, within_a=0.0, within_b=0.0, assumed=False)
    trials_a, trials_b = (usual_trials(side) for side in zip(*pairs, strict=True))
    between = max(0.0, spread - within_a / trials_a - within_b / trials_b)
    return Variances(between_tasks=between, within_a=within_a, within_b=within_b, assumed=False)


def detectable_difference(tasks: int, trials_a: float, trials_b: float, variances: Variances) -> float | None:
    """The smallest true difference that a run of this size detects with 80 % power; at most 1."""
    if tasks < 1 or trials_a <= 0 or trials_b <= 0:
        return None
    variance = variances.between_tasks + variances.within_a / trials_a + variances.within_b / trials_b
    return min(1.0, POWER_FACTOR * math.sqrt(variance / tasks))


def usual_trials(side: Sequence[Passes]) -> float:
    """Typical trials per task: the harmonic mean, because variances scale with 1/n."""
    return len(side) / math.fsum(1 / task.trials for task in side)


def _within(side: Sequence[Passes]) -> float | None:
    if any(task.trials < 2 for task in side):
        return None
    return math.fsum(task.rate * (1 - task.rate) * task.trials / (task.trials - 1) for task in side) / len(side)


def _whole_numbers(differences: Sequence[Fraction]) -> list[int]:
    """The non-zero differences as integers on a common scale: their sums compare without rounding."""
    scale = math.lcm(*(difference.denominator for difference in differences))
    return [int(difference * scale) for difference in differences if difference]


def _pattern_sums(sizes: Sequence[int]) -> dict[int, int] | None:
    """Number of sign patterns per sum; ``None`` if there are too many sums."""
    sums, steps = {0: 1}, 0
    for size in sizes:
        steps += len(sums)
        if steps > EXACT_STEPS:
            return None
        grown: dict[int, int] = {}
        for total, ways in sums.items():
            grown[total + size] = grown.get(total + size, 0) + ways
            grown[total - size] = grown.get(total - size, 0) + ways
        sums = grown
    return sums


def _drawn_p(sizes: Sequence[int], observed: int, seed: int) -> float:
    """The observed pattern is counted too, so p is never 0."""
    rng = random.Random(seed)  # noqa: S311 - resampling, not secrecy
    alike = sorted(Counter(abs(size) for size in sizes).items())
    everything = sum(size * count for size, count in alike)
    extreme = 0
    for _ in range(DRAWN_PATTERNS):
        flipped = sum(size * rng.getrandbits(count).bit_count() for size, count in alike)
        extreme += abs(everything - 2 * flipped) >= observed
    return (extreme + 1) / (DRAWN_PATTERNS + 1)
