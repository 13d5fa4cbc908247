"""A score: the mean pass rate over tasks, with both intervals and pass@k. Used by ``report``.

A number that the trials do not support is ``None``; ``unavailable`` says why.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.domain.frozen import Frozen
from seatrial.domain.statistics import (
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
        unavailable["tasks_as_sample"] = "one task says nothing about others" if tasks else "no task has a score"
    if fixed is None:
        unavailable["tasks_fixed"] = _too_few(tasks, 2)
    return Score(
        value=mean([task.rate for task in tasks]),
        tasks=len(tasks),
        trials=sum(task.trials for task in tasks),
        tasks_as_sample=sampled,
        tasks_fixed=fixed,
        pass_rates=tuple(_pass_rate(tasks, k) for k in sorted({*USUAL_K, planned_trials}) if k > 0),
        unavailable=unavailable,
    )


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
