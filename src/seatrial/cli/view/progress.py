"""Live progress of a job: counts, rate, time left. A live line on a terminal, occasional plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from seatrial.domain.job import Job, JobCounts

Show = Callable[[JobCounts], None]

_PLAIN_EVERY_SEC = 10.0


@contextmanager
def show_progress(job: Job, quiet: bool) -> Iterator[Show]:
    """Yields a function that takes new counts a few times a second."""
    if quiet:
        yield lambda counts: None
    elif sys.stderr.isatty():
        with _moving_line(job) as show:
            yield show
    else:
        yield _PlainLines(job)


@contextmanager
def _moving_line(job: Job) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}", markup=False),
        TimeElapsedColumn(),
    )
    pace = Pace()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(f"job {job.id}", total=None, status="")

        def show(counts: JobCounts) -> None:
            status = f"{counts_text(counts)} · {pace.text(counts)}"
            progress.update(bar, completed=counts.ended, total=counts.total, status=status)

        yield show


class _PlainLines:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._pace = Pace()
        self._last_at = time.monotonic()
        self._last = JobCounts()

    def __call__(self, counts: JobCounts) -> None:
        now = time.monotonic()
        done = counts.ended == counts.total
        pace = self._pace.text(counts)
        if counts != self._last and (done or now - self._last_at >= _PLAIN_EVERY_SEC):
            line = f"job {self._job.id}: {counts.ended}/{counts.total} · {counts_text(counts)} · {pace}"
            sys.stderr.write(line + "\n")
            self._last_at, self._last = now, counts


class Pace:
    """Trials per second and the time left, from the trials that ended since its creation."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._ended_before: int | None = None

    def text(self, counts: JobCounts) -> str:
        if self._ended_before is None:
            self._ended_before = counts.ended
        ended = counts.ended - self._ended_before
        elapsed = self._clock() - self._began
        if not ended or elapsed <= 0:
            return "starting"
        rate = ended / elapsed
        left = (counts.total - counts.ended) / rate
        return f"{rate:.1f}/s · {duration(left)} left" if rate >= 1 else f"{rate * 60:.1f}/min · {duration(left)} left"


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


def duration(seconds: float) -> str:
    """``850 ms``, ``4.2 s``, ``1 m 12 s``, ``2 h 05 m``."""
    if round(seconds * 1000) < 1000:
        return f"{seconds * 1000:.0f} ms"
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} m"
