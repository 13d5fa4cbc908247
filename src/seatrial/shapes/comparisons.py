"""Comparisons of jobs and configurations."""

from __future__ import annotations

from seatrial.domain.comparisons.comparison import Comparison
from seatrial.domain.comparisons.difference_matrix import MatrixRow
from seatrial.domain.comparisons.verdict import verdict
from seatrial.engine.reports.comparing import Compared
from seatrial.shapes.answers import Shape


class JudgedComparison(Comparison):
    """A comparison with its verdict in one sentence."""

    verdict: str


class Comparisons(Shape):
    items: list[JudgedComparison]
    matrix: list[MatrixRow]
    """Tasks × `items`: where each B differs from its A. The largest losses come first."""

    @classmethod
    def of(cls, found: Compared) -> Comparisons:
        items = [JudgedComparison(**dict(each), verdict=verdict(each)) for each in found.items]
        return cls(items=items, matrix=list(found.matrix))

    @property
    def compared(self) -> Compared:
        """The same without the sentences."""
        items = (Comparison(**{name: getattr(each, name) for name in Comparison.model_fields}) for each in self.items)
        return Compared(items=tuple(items), matrix=tuple(self.matrix))
