"""What pictures of a report need beyond its numbers: an order of tasks, a front, a series of jobs.

Numbers themselves come from ``report`` and ``score``; nothing is estimated here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from seatrial.domain.frozen import Frozen
from seatrial.domain.reports.report import ConfigurationReport, JobReport, TaskReport
from seatrial.domain.reports.score import ScoreLine


class Rival(NamedTuple):
    """A configuration with a score and what it takes."""

    configuration: ConfigurationReport
    score: float
    price: float
    on_front: bool
    """Whether no other has at least its score for at most its price."""


def rivals(report: JobReport, price_of: Callable[[ConfigurationReport], float | None]) -> tuple[Rival, ...]:
    """Configurations with a score and a price, in the report's order."""
    found = [
        (each, score, price)
        for each in report.configurations
        if (score := each.headline.value) is not None and (price := price_of(each)) is not None
    ]
    values = [(score, price) for _, score, price in found]
    return tuple(Rival(each, score, price, not _beaten((score, price), values)) for each, score, price in found)


def dollars_per_trial(of: ConfigurationReport) -> float | None:
    return of.spending.cost_per_trial


def median_seconds(of: ConfigurationReport) -> float | None:
    return of.spread.seconds.p50 if of.spread.seconds else None


def _beaten(one: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
    score, price = one
    return any(other != one and other[0] >= score and other[1] <= price for other in others)


class TaskLine(NamedTuple):
    """One task under every configuration, in the report's order; ``None``: the configuration has no such task."""

    task: str
    digest: str
    cells: tuple[TaskReport | None, ...]
    disagreement: float | None
    """Largest minus smallest share of passed trials over the configurations; ``None`` with fewer than two shares."""


def by_disagreement(report: JobReport) -> tuple[TaskLine, ...]:
    """Tasks on which configurations differ most come first; among equals, those whose own attempts differ most."""
    columns = [{task.task: task for task in each.tasks} for each in report.configurations]
    names = dict.fromkeys(name for column in columns for name in column)
    lines = [_line(name, [column.get(name) for column in columns]) for name in names]
    return tuple(sorted(lines, key=_order))


def _order(line: TaskLine) -> tuple[float, float, str]:
    """Rounded, so that equal shares with different last digits are equal."""
    return -round(line.disagreement or 0.0, 9), -round(_unsteadiness(line), 9), line.task


def _line(name: str, cells: Sequence[TaskReport | None]) -> TaskLine:
    shares = [cell.valid for cell in cells if cell is not None and cell.valid is not None]
    digest = next(cell.digest for cell in cells if cell is not None)
    return TaskLine(name, digest, tuple(cells), max(shares) - min(shares) if len(shares) > 1 else None)


def _unsteadiness(line: TaskLine) -> float:
    shares = [cell.valid for cell in line.cells if cell is not None and cell.valid is not None]
    return sum(share * (1 - share) for share in shares)


class TrendPoint(Frozen):
    """One configuration in one job."""

    job: int
    name: str
    created_at: datetime
    score: ScoreLine
    """Its label is that of the configuration, the same in every job."""


class Trend(Frozen):
    """Scores over jobs of one dataset with the same tasks, oldest first."""

    dataset: str | None = None
    points: tuple[TrendPoint, ...] = ()
    other_tasks: int = 0
    """Jobs of this dataset that ran other tasks of it, or other content; not in the series."""
    missing: str | None = None
    """Why there is no series."""
