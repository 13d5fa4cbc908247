"""Whether a difference is more than chance, and how small a one could have been seen. Called by ``comparison``.

Knows numbers only. Every test says which it was and how its p-value was found.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction

from seatrial.domain.distributions import binomial_half_tail
from seatrial.domain.frozen import Frozen
from seatrial.domain.statistics import SEED, Passes, sample_variance

EXACT_STEPS = 500_000
"""Additions (well under a second) within which all sign patterns are counted; beyond, patterns are drawn."""
DRAWN_PATTERNS = 9_999
"""With the observed pattern added this gives p-values in steps of 1/10,000."""
POWER_FACTOR = 1.96 + 0.84
"""Two-sided 5 %, and a chance of 80 % to see it."""


class TestKind(StrEnum):
    __test__ = False  # not a pytest class

    MCNEMAR = "exact McNemar"
    SIGN_FLIP = "exact sign-flip permutation"
    SIGN_FLIP_DRAWN = "sampled sign-flip permutation"


class Significance(Frozen):
    p: float
    test: TestKind
    patterns: int | None = None
    """Sign patterns drawn by the sampled test."""
    smallest_p: float
    """What p would be, had every task that differs differed in the same direction."""


class Variances(Frozen):
    """What makes a measured difference vary. The defaults are for tasks about which nothing is known yet."""

    between_tasks: float = 1 / 9
    """ω²: of the true difference from task to task."""
    within_a: float = 1 / 6
    """σ_A²: of one trial on one task; 1/6 is the mean of p(1 - p) when chances are spread evenly over 0 … 1."""
    within_b: float = 1 / 6
    assumed: bool = True
    """Whether these are the stated defaults instead of estimates from trials."""


def sign_flip(differences: Sequence[Fraction], seed: int = SEED) -> Significance:
    """Had A and B been the same, each task's difference could as well have had the other sign.

    p is the share of sign patterns whose sum is at least as far from 0 as the observed one. All patterns are counted
    where their sums fall on few enough values (as they do for shares of a few trials); else they are drawn.
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
    """For one trial each: of the tasks that only one side passed, how uneven is the split?"""
    discordant = only_a + only_b
    p = min(1.0, 2 * binomial_half_tail(min(only_a, only_b), discordant))
    return Significance(p=p, test=TestKind.MCNEMAR, smallest_p=min(1.0, 2 / 2**discordant))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in the order given: all of them together are wrong with a chance of at most 5 %."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    reached = 0.0
    for rank, index in enumerate(order):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = reached
    return adjusted


def estimate_variances(pairs: Sequence[tuple[Passes, Passes]]) -> Variances:
    """From trials of both sides on the same tasks; the defaults where the trials show no spread to learn from.

    With single trials the spread within tasks cannot be told from the spread between them; all of it is then counted
    as ``between_tasks``, which gives the same detectable difference for as many trials again.
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
    """The smallest true difference that a run of this size sees with a chance of 80 %; at most 1."""
    if tasks < 1 or trials_a <= 0 or trials_b <= 0:
        return None
    variance = variances.between_tasks + variances.within_a / trials_a + variances.within_b / trials_b
    return min(1.0, POWER_FACTOR * math.sqrt(variance / tasks))


def usual_trials(side: Sequence[Passes]) -> float:
    """Trials of a task, for tasks that differ in them: the harmonic mean, since variances go with 1/n."""
    return len(side) / math.fsum(1 / task.trials for task in side)


def _within(side: Sequence[Passes]) -> float | None:
    if any(task.trials < 2 for task in side):
        return None
    return math.fsum(task.rate * (1 - task.rate) * task.trials / (task.trials - 1) for task in side) / len(side)


def _whole_numbers(differences: Sequence[Fraction]) -> list[int]:
    """The differences that are not 0, on a common scale: sums of whole numbers compare without rounding."""
    scale = math.lcm(*(difference.denominator for difference in differences))
    return [int(difference * scale) for difference in differences if difference]


def _pattern_sums(sizes: Sequence[int]) -> dict[int, int] | None:
    """How many sign patterns lead to each sum, or ``None`` where there are too many sums to list."""
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
    """With the observed pattern counted among the drawn ones, so that p is never 0."""
    rng = random.Random(seed)  # noqa: S311 - resampling, not secrecy
    alike = sorted(Counter(abs(size) for size in sizes).items())
    everything = sum(size * count for size, count in alike)
    extreme = 0
    for _ in range(DRAWN_PATTERNS):
        flipped = sum(size * rng.getrandbits(count).bit_count() for size, count in alike)
        extreme += abs(everything - 2 * flipped) >= observed
    return (extreme + 1) / (DRAWN_PATTERNS + 1)
