"""Comparisons with their meaning in words."""

from __future__ import annotations

from seatrial.domain.comparison import Comparison
from seatrial.shapes.page import Shape


class JudgedComparison(Comparison):
    """A comparison with its meaning in one sentence."""

    verdict: str


class Comparisons(Shape):
    items: list[JudgedComparison]
