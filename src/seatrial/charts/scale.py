"""Axes: from values to pixels, with round values to mark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_LOGARITHMIC_FROM = 30.0
"""Values that differ by more than this factor get a logarithmic axis."""
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class Scale:
    """Maps ``low`` … ``high`` to ``start`` … ``end``."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        low, high, here = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, here = math.log(low), math.log(high), math.log(here)
        share = (here - low) / (high - low) if high > low else 0.5
        return round(self.start + share * (self.end - self.start), 2)

    def ticks(self, most: int = 5) -> tuple[float, ...]:
        return self._decades(most) if self.logarithmic else self._steps(most)

    def _steps(self, most: int) -> tuple[float, ...]:
        reach = self.high - self.low
        if reach <= 0:
            return (self.low,)
        power = 10.0 ** math.floor(math.log10(reach / most))
        step = next(power * each for each in (*_STEPS, 20) if reach / (power * each) <= most)
        first = math.ceil(self.low / step - 1e-9)
        return tuple(step * number for number in range(first, math.floor(self.high / step + 1e-9) + 1))

    def _decades(self, most: int) -> tuple[float, ...]:
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        every = max(1, math.ceil((last - first + 1) / most))
        return tuple(10.0**power for power in range(first, last + 1, every)) or (self.low, self.high)


def shares(start: float, end: float) -> Scale:
    """For 0 … 100 %."""
    return Scale(0.0, 1.0, start, end)


def amounts(values: Sequence[float], start: float, end: float) -> Scale:
    """From 0 upwards; logarithmic if the values differ by orders of magnitude."""
    positive = [value for value in values if value > 0]
    if positive and len(positive) == len(values) and max(values) > _LOGARITHMIC_FROM * min(values):
        low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))
        return Scale(low, high, start, end, logarithmic=True)
    return Scale(0.0, 1.08 * max(values, default=1.0) or 1.0, start, end)
