"""What trials of a task took: money, tokens and time; and how much two sides differ in it. Used by ``comparison``.

Pure. Cost and tokens are those of every try, time is that of the last try of trials that ended by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from seatrial.domain.frozen import Frozen
from seatrial.domain.statistics.estimates import Interval, mean, sample_variance, t_interval


class Effort(Frozen):
    """Means over the trials of one task. ``None``: no trial reported it."""

    cost_usd: float | None = None
    tokens: float | None = None
    """Input and output."""
    seconds: float | None = None


class EffortDifference(Frozen):
    """One kind of effort per trial, as means over the tasks that both sides reported it for."""

    a: float
    b: float
    a_minus_b: float
    interval: Interval | None
    """95 % interval of ``a_minus_b``, with the tasks as a sample."""
    tasks: int


class EffortDifferences(Frozen):
    cost_usd: EffortDifference | None = None
    tokens: EffortDifference | None = None
    seconds: EffortDifference | None = None
    unavailable: dict[str, str] = {}


def effort_differences(tasks: Sequence[str], a: Mapping[str, Effort], b: Mapping[str, Effort]) -> EffortDifferences:
    """Over these tasks."""
    nothing = Effort()
    pairs = [(a.get(task, nothing), b.get(task, nothing)) for task in tasks]
    costs = _difference([(one.cost_usd, other.cost_usd) for one, other in pairs])
    tokens = _difference([(one.tokens, other.tokens) for one, other in pairs])
    seconds = _difference([(one.seconds, other.seconds) for one, other in pairs])
    found = {"cost_usd": costs, "tokens": tokens, "seconds": seconds}
    why = "no common task has trials of both sides that reported it"
    return EffortDifferences(
        cost_usd=costs,
        tokens=tokens,
        seconds=seconds,
        unavailable={name: why for name, difference in found.items() if difference is None},
    )


def _difference(values: Sequence[tuple[float | None, float | None]]) -> EffortDifference | None:
    known = [(one, other) for one, other in values if one is not None and other is not None]
    a, b = mean([one for one, _ in known]), mean([other for _, other in known])
    if a is None or b is None:
        return None
    differences = [one - other for one, other in known]
    return EffortDifference(
        a=a, b=b, a_minus_b=math.fsum(differences) / len(known), interval=_interval(differences), tasks=len(known)
    )


def _interval(differences: Sequence[float]) -> Interval | None:
    variance = sample_variance(differences)
    if not variance:
        return None
    error = math.sqrt(variance / len(differences))
    centre = math.fsum(differences) / len(differences)
    return t_interval(centre, error, len(differences) - 1, lowest=-math.inf, highest=math.inf)
