"""Probability distributions that the standard library lacks. Used by ``statistics`` and ``significance`` only.

Pure functions without numpy or scipy, so that reports are cheap to import and fast.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_EXPANSION_FROM = 1000
"""Degrees of freedom from which a series around the normal quantile is exact to the last digits."""


def normal_quantile(probability: float) -> float:
    return NormalDist().inv_cdf(probability)


def t_cdf(value: float, freedom: float) -> float:
    """Student's t: the probability of at most ``value``."""
    square = value * value
    tail = 0.5 * _beta_ratio(freedom / (freedom + square), square / (freedom + square), freedom / 2, 0.5)
    return tail if value < 0 else 1.0 - tail


def t_quantile(probability: float, freedom: float) -> float:
    """Student's t: the value that is not exceeded with this probability."""
    if not 0.0 < probability < 1.0 or freedom <= 0:
        raise ValueError("a t quantile needs 0 < probability < 1 and freedom > 0")
    if probability == 0.5:
        return 0.0
    if probability > 0.5:  # the lower tail keeps digits that 1 - p would lose
        return -t_quantile(1.0 - probability, freedom)
    if freedom == 1:
        return -1.0 / math.tan(math.pi * probability)
    if freedom >= _EXPANSION_FROM:
        return _expanded_t_quantile(normal_quantile(probability), freedom)
    return _bisected_t_quantile(probability, freedom)


def binomial_half_tail(successes: int, trials: int) -> float:
    """The exact probability of at most ``successes`` in ``trials`` tosses of a fair coin."""
    if successes < 0:
        return 0.0
    term = total = 1
    for index in range(min(successes, trials)):
        term = term * (trials - index) // (index + 1)
        total += term
    return float(total / 2**trials)


def _expanded_t_quantile(z: float, freedom: float) -> float:
    """Cornish-Fisher's series in 1/freedom (Abramowitz and Stegun, 26.7.5)."""
    z2 = z * z
    terms = (
        (z2 + 1) * z / 4,
        ((5 * z2 + 16) * z2 + 3) * z / 96,
        (((3 * z2 + 19) * z2 + 17) * z2 - 15) * z / 384,
        ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) * z / 92160,
    )
    return z + math.fsum(term / freedom ** (power + 1) for power, term in enumerate(terms))


def _bisected_t_quantile(probability: float, freedom: float) -> float:
    low = -1.0
    while t_cdf(low, freedom) > probability:
        low *= 2
    high = 0.0 if low == -1.0 else low / 2
    while high - low > 1e-15 * -low:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if t_cdf(middle, freedom) > probability:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def _beta_ratio(x: float, rest: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), where ``rest`` is 1 - x without its rounding."""
    if x <= 0.0 or rest <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast only on the other side
        return 1.0 - _beta_ratio(rest, x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    return math.exp(log_front) * _beta_fraction(x, a, b) / a


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    numerator = 1.0
    denominator = 1.0 / (1.0 - (a + b) * x / (a + 1) or tiny)
    value = denominator
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for coefficient in (even, odd):
            denominator = 1.0 / (1.0 + coefficient * denominator or tiny)
            numerator = 1.0 + coefficient / numerator or tiny
            value *= numerator * denominator
        if abs(numerator * denominator - 1.0) < 1e-15:
            break
    return value
