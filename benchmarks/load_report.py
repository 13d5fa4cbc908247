"""What a load test saw, and what it came to: lost and duplicated runs, latencies, pace."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

ENDED = ("passed", "failed", "error")


@dataclass(frozen=True, slots=True)
class RunSeen:
    """One run as the service told it in the end."""

    number: int
    status: str
    """``pending``, ``running`` or one of ``ENDED``."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    tries: int = 1
    grades: int = 1
    """Tries of it that have a grade; more than one means that a result was recorded twice."""


@dataclass(frozen=True, slots=True)
class TaskSeen:
    """One accepted task with all of its runs."""

    name: str
    runs_wanted: int
    runs: tuple[RunSeen, ...]

    @property
    def finished(self) -> int:
        return len({run.number for run in self.runs if run.status in ENDED})

    @property
    def lost(self) -> int:
        """Runs that did not end in time, and those that the service no longer knows."""
        return max(0, self.runs_wanted - self.finished)

    @property
    def duplicated(self) -> int:
        """Runs that nobody asked for, numbers given twice, and results recorded twice."""
        numbers = Counter(run.number for run in self.runs)
        surplus = max(0, len(numbers) - self.runs_wanted)
        again = sum(count - 1 for count in numbers.values())
        return surplus + again + sum(max(0, run.grades - 1) for run in self.runs)


@dataclass(slots=True)
class Timings:
    """Seconds, one for each time something was done."""

    submit: list[float] = field(default_factory=list)
    """From the upload until the service took the runs."""
    first_state: list[float] = field(default_factory=list)
    """From then until a client saw that a run had begun."""
    look: list[float] = field(default_factory=list)
    """One request for the state of a task."""
    whole: list[float] = field(default_factory=list)
    """From the upload until a client saw that every run of the task had ended."""


@dataclass(frozen=True, slots=True)
class Spread:
    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        ordered = sorted(values)
        if not ordered:
            return None
        return cls(
            *(ordered[min(len(ordered) - 1, math.ceil(len(ordered) * share) - 1)] for share in (0.5, 0.95, 0.99))
        )

    def __str__(self) -> str:
        return f"p50 {_shown(self.p50)}  p95 {_shown(self.p95)}  p99 {_shown(self.p99)}"


@dataclass(frozen=True, slots=True)
class LoadReport:
    title: str
    accepted: int
    refused: int
    finished: int
    passed: int
    failed: int
    error: int
    lost: int
    duplicated: int
    tried_again: int
    peak_in_flight: int
    seconds: float
    trials_per_sec: float
    latencies: dict[str, Spread | None]
    refusals: tuple[str, ...] = ()
    """The first few, in the service's words."""

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicated or self.refused) and self.accepted > 0

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "clean": self.clean}

    def text(self) -> str:
        lines = [
            self.title,
            f"  accepted        {self.accepted} runs, {self.refused} refused",
            f"  finished        {self.finished}",
            f"  of these        {self.passed} passed, {self.failed} failed, {self.error} without a grade",
            f"  lost            {self.lost}",
            f"  duplicated      {self.duplicated}",
            f"  tried again     {self.tried_again}",
            *(f"  {name:<15} {spread or 'not measured'}" for name, spread in self.latencies.items()),
            f"  peak in flight  {self.peak_in_flight}",
            f"  pace            {self.trials_per_sec:.1f} trials/s over {self.seconds:.1f} s",
        ]
        return "\n".join([*lines, *(f"  refused: {reason}" for reason in self.refusals)])


def report_of(
    title: str, tasks: Sequence[TaskSeen], refusals: Sequence[str], refused: int, timings: Timings, seconds: float
) -> LoadReport:
    runs = [run for task in tasks for run in task.runs]
    outcomes = Counter(run.status for run in runs)
    finished = sum(task.finished for task in tasks)
    return LoadReport(
        title=title,
        accepted=sum(task.runs_wanted for task in tasks),
        refused=refused,
        finished=finished,
        passed=outcomes["passed"],
        failed=outcomes["failed"],
        error=outcomes["error"],
        lost=sum(task.lost for task in tasks),
        duplicated=sum(task.duplicated for task in tasks),
        tried_again=sum(max(0, run.tries - 1) for run in runs),
        peak_in_flight=peak_of(runs),
        seconds=seconds,
        trials_per_sec=finished / seconds if seconds else 0.0,
        latencies={
            "submit": Spread.of(timings.submit),
            "first state": Spread.of(timings.first_state),
            "one look": Spread.of(timings.look),
            "whole task": Spread.of(timings.whole),
        },
        refusals=tuple(refusals[:5]),
    )


def peak_of(runs: Iterable[RunSeen]) -> int:
    """The most runs that were under way at one moment, by the service's own times."""
    known = [(run.started_at, run.ended_at) for run in runs]
    changes = [(start, 1) for start, end in known if start and end] + [
        (end, -1) for start, end in known if start and end
    ]
    peak = now = 0
    for _, change in sorted(changes):
        now += change
        peak = max(peak, now)
    return peak


def _shown(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
