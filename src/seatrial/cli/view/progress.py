"""Live progress of a job: counts, pace, time left. A live line on a terminal, occasional plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from seatrial.domain.job import Job, JobCounts
from seatrial.domain.model_calls.budget import NOTHING, Amount, Cap, shown_dollars
from seatrial.domain.reports.figures import duration
from seatrial.domain.reports.progress import Progress

__all__ = ["Show", "counts_text", "duration", "pace_text", "show_progress", "spent_text"]


class Show(Protocol):
    def __call__(self, counts: JobCounts, found: Progress, spent: Amount = NOTHING) -> None: ...


_PLAIN_EVERY_SEC = 10.0


@contextmanager
def show_progress(job: Job, quiet: bool) -> Iterator[Show]:
    """Yields a function that takes new counts a few times a second."""
    if quiet:
        yield _nothing
    elif sys.stderr.isatty():
        with _moving_line(job) as show:
            yield show
    else:
        yield _PlainLines(job)


@contextmanager
def _moving_line(job: Job) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}", markup=False),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(f"job {job.id}", total=None, status="")

        def show(counts: JobCounts, found: Progress, spent: Amount = NOTHING) -> None:
            parts = (counts_text(counts), pace_text(found), spent_text(spent, job.spec.budget.job))
            status = " · ".join(filter(None, parts))
            progress.update(bar, completed=counts.ended, total=counts.total, status=status)

        yield show


class _PlainLines:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._last_at = time.monotonic()
        self._last = JobCounts()

    def __call__(self, counts: JobCounts, found: Progress, spent: Amount = NOTHING) -> None:
        now = time.monotonic()
        done = counts.ended == counts.total
        if counts != self._last and (done or now - self._last_at >= _PLAIN_EVERY_SEC):
            pace = "" if done else pace_text(found)
            parts = (counts_text(counts), pace, spent_text(spent, self._job.spec.budget.job))
            status = " · ".join(filter(None, parts))
            sys.stderr.write(f"job {self._job.id}: {counts.ended}/{counts.total} · {status}\n")
            self._last_at, self._last = now, counts


def _nothing(counts: JobCounts, found: Progress, spent: Amount = NOTHING) -> None:
    pass


def spent_text(spent: Amount, cap: Cap) -> str:
    """``$0.42 of $5.00, 12,300 tokens, 31 of 100 calls``; empty before the first call."""
    if not spent.calls:
        return ""
    counted = ((spent.tokens, cap.tokens, "token"), (spent.calls, cap.calls, "call"))
    dollars = shown_dollars(spent.dollars) if spent.nanodollars or cap.dollars is not None else ""
    parts = [dollars and f"{dollars}{_of(cap.dollars and shown_dollars(cap.dollars))}"]
    for number, most, unit in counted:
        parts.append(f"{number:,}{_of(most and f'{most:,}')} {unit}{'s' * (number != 1 or most is not None)}")
    return ", ".join(filter(None, parts))


def _of(most: object) -> str:
    return f" of {most}" if most else ""


def pace_text(found: Progress) -> str:
    """``2.1/s · 3 m 05 s left``."""
    if found.per_second is None:
        pace = "starting" if not found.ended else "nothing ended lately"
    else:
        pace = f"{found.per_second:.1f}/s" if found.per_second >= 1 else f"{found.per_second * 60:.1f}/min"
    return pace if found.seconds_left is None else f"{pace} · {duration(found.seconds_left)} left"


def counts_text(counts: JobCounts) -> str:
    parts = [
        (counts.passed, "passed"),
        (counts.failed, "failed"),
        (counts.error, "errors"),
        (counts.cancelled, "cancelled"),
        (counts.running, "running"),
        (counts.queued, "queued"),
    ]
    return ", ".join(f"{number} {word}" for number, word in parts if number) or "nothing yet"
