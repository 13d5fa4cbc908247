"""Pace of a job and the time that is left. The page and the CLI show these, and nothing that they work out themselves.

The pace is that of the last minutes. The time left comes from what runs and waits, and from how long such trials took;
it is never shorter than what runs will still take. A retry restarts neither.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from seatrial.domain.frozen import Frozen

RECENT = timedelta(minutes=5)
"""The pace counts trials that ended within this time."""
_OVERDUE = 0.1
"""A trial that already takes longer than any before is expected to take this share of its time in addition."""

type Kind = tuple[str, int]
"""A task's digest and the index of a configuration."""


class KnownDuration(Frozen):
    """How long graded trials of one task and configuration took."""

    trials: int
    mean: float
    longest: float


class RunningTrial(Frozen):
    digest: str
    agent_index: int
    started_at: datetime


class WorkLeft(Frozen):
    """The state of a job's trials at one moment, added attempts included."""

    running: tuple[RunningTrial, ...] = ()
    waiting: dict[Kind, int] = {}
    durations: dict[Kind, KnownDuration] = {}
    recently_ended: int = 0
    """Trials that ended within ``RECENT``."""
    first_started_at: datetime | None = None
    """The earliest start of a trial that runs or has ended."""


class Progress(Frozen):
    ended: int = 0
    """Planned trials that ended; the bar fills with these."""
    planned: int = 0
    per_second: float | None = None
    """Trials that ended per second, over the last minutes; ``None`` if none did."""
    seconds_left: float | None = None
    """``None`` when nothing is left, or nothing is known about trials like those that are left."""


def progress(work: WorkLeft, now: datetime, *, ended: int, planned: int, places: int | None = None) -> Progress:
    """``places``: how many trials can run at once, if that is known; at least as many as run now."""
    return Progress(
        ended=ended, planned=planned, per_second=_pace(work, now), seconds_left=_seconds_left(work, now, places)
    )


def _pace(work: WorkLeft, now: datetime) -> float | None:
    if not work.recently_ended or work.first_started_at is None:
        return None
    span = min(RECENT, now - work.first_started_at).total_seconds()
    return work.recently_ended / span if span > 0 else None


def _seconds_left(work: WorkLeft, now: datetime, places: int | None) -> float | None:
    usual = _overall(work.durations)
    if usual is None or not (work.running or work.waiting):
        return None
    running = [
        _remaining(
            work.durations.get((trial.digest, trial.agent_index), usual), (now - trial.started_at).total_seconds()
        )
        for trial in work.running
    ]
    waiting = [(work.durations.get(kind, usual).mean, trials) for kind, trials in work.waiting.items()]
    at_once = max(1, len(running), places or 0)
    total = math.fsum(running) + math.fsum(mean * trials for mean, trials in waiting)
    return max(total / at_once, *running, *(mean for mean, _ in waiting))


def _remaining(known: KnownDuration, elapsed: float) -> float:
    if elapsed < known.mean:
        return known.mean - elapsed
    return max(known.longest - elapsed, _OVERDUE * elapsed)


def _overall(durations: Mapping[Kind, KnownDuration]) -> KnownDuration | None:
    """All kinds together, for trials of a kind that none has ended of."""
    found: Sequence[KnownDuration] = tuple(durations.values())
    trials = sum(each.trials for each in found)
    if not trials:
        return None
    mean = math.fsum(each.mean * each.trials for each in found) / trials
    return KnownDuration(trials=trials, mean=mean, longest=max(each.longest for each in found))
