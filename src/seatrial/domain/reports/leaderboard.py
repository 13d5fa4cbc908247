"""Configurations ranked on datasets, over many jobs.

One job represents a configuration: the newest eligible one; if none is eligible, the newest that has a score. Jobs are
never pooled: they ran at other times and on other machines, and could be repeated until the number is good. Others are
listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from seatrial.domain.frozen import Frozen
from seatrial.domain.reports.figures import plural
from seatrial.domain.reports.score import ScoreLine


class JobScore(Frozen):
    """The score of one configuration in one job, with what the leaderboard's rules say about it."""

    job: int
    name: str
    created_at: datetime
    score: ScoreLine
    attempts: int
    """Planned attempts at each task."""
    cost_usd: float | None = None
    """Of the planned trials; ``None``: no trial reported one."""
    priced: int = 0
    """Trials that reported a cost."""
    cost_per_trial: float | None = None
    eligible: bool = False
    why_not: tuple[str, ...] = ()
    """Rules of the leaderboard that it breaks, with what it did instead."""
    notices: tuple[str, ...] = ()
    """Attempts that were added or removed, trials that were cancelled."""


class Entry(Frozen):
    """One configuration on one board."""

    label: str
    agent: str
    model: str | None
    rank: int | None = None
    """Among the eligible entries of its board; ``None`` if it is not eligible or not scored."""
    shown: JobScore
    """The job that represents the configuration."""
    chosen: str
    """Why this job."""
    others: tuple[JobScore, ...] = ()
    """Further jobs of the same configuration and tasks, newest first; in no number of ``shown``."""


class Board(Frozen):
    """All configurations that ran exactly the same tasks."""

    label: str
    dataset: str | None
    """``None``: the jobs ran tasks, and no dataset."""
    tasks: int
    entries: tuple[Entry, ...]
    """Eligible ones by rank, then the others, best first."""


class Leaderboard(Frozen):
    rules: str
    version: str
    boards: tuple[Board, ...]
    jobs: int
    """Jobs that were looked at."""
    older: int = 0
    """Older jobs that were not looked at, because there are too many."""


def entry(label: str, agent: str, model: str | None, scores: Iterable[JobScore]) -> Entry:
    """``scores``: of one configuration on the same tasks, at least one."""
    newest_first = sorted(scores, key=lambda each: each.job, reverse=True)
    eligible = [each for each in newest_first if each.eligible]
    scored = [each for each in newest_first if each.score.value is not None]
    shown = (eligible or scored or newest_first)[0]
    return Entry(
        label=label,
        agent=agent,
        model=model,
        shown=shown,
        chosen=_why(newest_first, eligible, scored),
        others=tuple(each for each in newest_first if each is not shown),
    )


def ranked(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Equal scores share a rank."""
    best_first = sorted(entries, key=_order)
    values = [each.shown.score.value for each in best_first if each.shown.eligible]
    return tuple(_with_rank(each, [value for value in values if value is not None]) for each in best_first)


def _order(each: Entry) -> tuple[bool, bool, float, str]:
    value = each.shown.score.value
    return not each.shown.eligible, value is None, -(value or 0.0), each.label


def _with_rank(each: Entry, values: Sequence[float]) -> Entry:
    value = each.shown.score.value
    if not each.shown.eligible or value is None:
        return each
    return each.model_copy(update={"rank": 1 + sum(other > value for other in values)})


def _why(jobs: Sequence[JobScore], eligible: Sequence[JobScore], scored: Sequence[JobScore]) -> str:
    if len(jobs) == 1:
        return "the only job"
    if eligible:
        return f"the newest of {plural(len(eligible), 'eligible job')}, {len(jobs)} in all"
    if scored:
        return f"the newest with a score of {plural(len(jobs), 'job')}, none eligible"
    return f"the newest of {plural(len(jobs), 'job')}, none scored"
