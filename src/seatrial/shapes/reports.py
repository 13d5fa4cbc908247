"""Comparisons with their verdict."""

from __future__ import annotations

from seatrial.domain.comparison import Comparison
from seatrial.shapes.page import Shape


class JudgedComparison(Comparison):
    """A comparison with its verdict in one sentence."""

    verdict: str


class Comparisons(Shape):
    items: list[JudgedComparison]
