"""A score: the mean pass rate over tasks, with both intervals and pass@k. Used by ``report`` and the listing of jobs.

``ScoreLine`` is the score as every list, header, row and file says it.

A number that the trials do not support is ``None``; ``unavailable`` says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from seatrial.domain.frozen import Frozen
from seatrial.domain.reports.fact import Basis, Counts
from seatrial.domain.statistics.estimates import (
    SEED,
    Interval,
    Passes,
    fixed_tasks_interval,
    mean,
    pass_at_k,
    pass_hat_k,
    sampled_tasks_interval,
)

USUAL_K = (1, 2, 5, 10)
MANY_MISSING = 0.05
"""Above this share of ended trials without a valid result, a score comes with its bounds."""


class PassRate(Frozen):
    """pass@k and pass^k, as means over tasks."""

    k: int
    pass_at_k: float | None
    """At least one of k passes."""
    pass_hat_k: float | None
    """All of k pass."""
    unavailable: str | None = None


class Score(Frozen):
    value: float | None
    """Mean over tasks of the share of trials that passed, 0 … 1."""
    tasks: int
    trials: int
    tasks_as_sample: Interval | None
    """95 % interval for other tasks of this kind."""
    tasks_fixed: Interval | None
    """95 % interval for another run on the same tasks."""
    pass_rates: tuple[PassRate, ...] = ()
    unavailable: dict[str, str] = {}
    """Why a field is ``None``."""


def score(tasks: Sequence[Passes], planned_trials: int, seed: int = SEED) -> Score:
    """``planned_trials``: maximum trials of a task, for pass@n."""
    sampled, fixed = sampled_tasks_interval(tasks, seed), fixed_tasks_interval(tasks)
    unavailable: dict[str, str] = {}
    if not tasks:
        unavailable["value"] = "no task has a trial to score"
    if sampled is None:
        unavailable["tasks_as_sample"] = no_sample(tasks)
    if fixed is None:
        few = any(task.trials < 2 for task in tasks)
        unavailable["tasks_fixed"] = _too_few(tasks, 2) if few or not tasks else "no task both passed and failed"
    return Score(
        value=mean([task.rate for task in tasks]),
        tasks=len(tasks),
        trials=sum(task.trials for task in tasks),
        tasks_as_sample=sampled,
        tasks_fixed=fixed,
        pass_rates=tuple(_pass_rate(tasks, k) for k in sorted({*USUAL_K, planned_trials}) if k > 0),
        unavailable=unavailable,
    )


def no_sample(tasks: Sequence[Passes]) -> str:
    """Why these tasks have no interval."""
    if not tasks:
        return "no task has a score"
    return "one task says nothing about others" if len(tasks) == 1 else "every task scored the same"


class Bounds(Frozen):
    """The score if every ended trial without a valid result had failed, and if every one had passed."""

    low: float
    high: float
    trials: int
    """Those without a valid result."""


class ScoreLine(Frozen):
    """The score of one configuration, as every list, header, row and file says it."""

    label: str = ""
    value: float | None = None
    """Mean over tasks of the share of valid trials that passed. ``None``: not scored."""
    low: float | None = None
    high: float | None = None
    """95 % interval with the tasks as a sample; ``None`` where it would mean nothing."""
    no_interval: str | None = None
    """Why there is no interval."""
    coverage: float | None = None
    """Valid trials of those that were planned."""
    leaderboard: float | None = None
    """The same with every error as 0, as leaderboards count."""
    bounds: Bounds | None = None
    """If many trials ended without a valid result: how far the score could be off because of them."""
    valid: int = 0
    ended: int = 0
    planned: int = 0

    @property
    def so_far(self) -> bool:
        """Whether trials are still missing."""
        return self.ended < self.planned


def score_line(label: str, tasks: Sequence[Counts], planned: int, seed: int = SEED) -> ScoreLine:
    """``tasks``: the counts of each task of one configuration. ``planned``: its trials in the job's plan."""
    scored = [task.passes(Basis.VALID) for task in tasks if task.valid]
    interval = sampled_tasks_interval(scored, seed)
    ended, valid = sum(task.ended for task in tasks), sum(task.valid for task in tasks)
    return ScoreLine(
        label=label,
        value=mean([task.rate for task in scored]),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        no_interval=None if interval else no_sample(scored),
        coverage=valid / planned if planned else None,
        leaderboard=mean([task.passes(Basis.LEADERBOARD).rate for task in tasks if not task.pending]),
        bounds=bounds(tasks) if ended - valid > MANY_MISSING * ended else None,
        valid=valid,
        ended=ended,
        planned=planned,
    )


def bounds(tasks: Sequence[Counts]) -> Bounds | None:
    """``None`` if every ended trial is valid."""
    counted = [task for task in tasks if task.ended]
    missing = sum(task.ended - task.valid for task in counted)
    if not missing:
        return None
    low = math.fsum(task.passed / task.ended for task in counted) / len(counted)
    high = math.fsum((task.passed + task.ended - task.valid) / task.ended for task in counted) / len(counted)
    return Bounds(low=low, high=high, trials=missing)


def best_first(lines: Iterable[ScoreLine]) -> tuple[ScoreLine, ...]:
    """Those that are not scored come last; equal ones keep their order."""
    return tuple(sorted(lines, key=lambda line: (line.value is None, -(line.value or 0.0))))


def _pass_rate(tasks: Sequence[Passes], k: int) -> PassRate:
    if not tasks or any(task.trials < k for task in tasks):
        return PassRate(k=k, pass_at_k=None, pass_hat_k=None, unavailable=_too_few(tasks, k))
    return PassRate(
        k=k,
        pass_at_k=mean([rate for task in tasks if (rate := pass_at_k(task, k)) is not None]),
        pass_hat_k=mean([rate for task in tasks if (rate := pass_hat_k(task, k)) is not None]),
    )


def _too_few(tasks: Sequence[Passes], needed: int) -> str:
    if not tasks:
        return "no task has a score"
    short = sum(task.trials < needed for task in tasks)
    return f"needs {needed} scored trials of every task; {short} of {len(tasks)} have fewer"
