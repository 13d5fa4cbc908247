"""A side of a comparison, from facts that a test made by hand."""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.domain.comparisons.comparison import Side
from seatrial.domain.reports.fact import TrialFact, by_task, count


def side(configuration: str, facts: Iterable[TrialFact]) -> Side:
    trials = by_task(facts)
    return Side(
        label=configuration,
        configuration=configuration,
        tasks={task: count(found) for task, found in trials.items()},
        digests={task: found[0].digest for task, found in trials.items()},
    )
