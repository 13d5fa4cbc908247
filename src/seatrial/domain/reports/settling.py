"""Decides when it is settled which of two configurations is better, for the engine, the report and the page.

Tasks come in an order that is drawn before the run; every task gets its first pair of trials (one of each
configuration) before any gets a second. After fixed numbers of pairs there is a *look*. A look counts only once all
pairs before it have ended, so that quick trials do not decide. It says that one configuration is better, that the
difference is within the margin, or nothing yet. A task on which all trials of the first attempts end the same gets
no further attempts: such tasks hardly tell the two apart.

Pure: the same outcomes give the same course on every machine, so any process can decide, at any time and repeatedly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from random import Random
from typing import NamedTuple

from pydantic import Field

from seatrial.domain.frozen import Frozen
from seatrial.domain.statistics.sequential_test import REPLAYS, SequentialSignFlip, evidence_of_smallness

SPENDING = 1.5
"""Up to a share f of the planned pairs the looks may spend ``alpha * f ** SPENDING``. Late looks, which know more, get
more of it, so that little power is lost against a single look at the end."""
QUIET_AFTER = 3
"""A task whose trials all end the same in this many attempts gets no more."""
_RELEASE_AHEAD = 0.75
"""When this share of the pairs before a look has ended, those after it may start, so that workers do not idle."""
_FINEST_SCALE = 720_720
"""A multiple of all numbers up to 16. Differences of more attempts than that are rounded to it."""


class UntilSettled(Frozen):
    """Stop as soon as it is known which of two configurations is better. ``attempts`` of the job is the maximum."""

    margin: float = Field(default=3.0, gt=0, le=100, allow_inf_nan=False)
    """In points. A difference that is shown to be smaller than this settles it, too."""
    alpha: float = Field(default=0.05, ge=0.001, le=0.5, allow_inf_nan=False)
    """Error probability over all looks together."""
    seed: int | None = Field(default=None, ge=0, lt=2**53)
    """Draws the order of tasks and the replays of the test. Default: drawn when the job is submitted."""


class Finding(StrEnum):
    OPEN = "open"
    """Trials are still to be run."""
    A_BETTER = "a better"
    B_BETTER = "b better"
    WITHIN_MARGIN = "within the margin"
    NOT_SETTLED = "not settled"
    """The maximum was reached, or no trial is left to run."""

    @property
    def settled(self) -> bool:
        return self not in (Finding.OPEN, Finding.NOT_SETTLED)


class Pair(NamedTuple):
    """The trials of both configurations in one attempt at a task."""

    digest: str
    attempt: int


type Ended = Mapping[tuple[str, int, int], bool | None]
"""By digest, configuration (0 or 1) and attempt: whether a trial passed; ``None`` if it ended without a valid result.
Trials that have not ended are missing."""


class Course(Frozen):
    """What the ended trials say, and what is to be run next."""

    finding: Finding
    difference: float | None = None
    """A minus B, mean over the tasks at the last complete look."""
    looks_made: int = 0
    looks_planned: int = 0
    wanted: tuple[Pair, ...] = ()
    """Pairs that may run now, in order."""
    quiet: tuple[Pair, ...] = ()
    """Pairs that are not needed, because their task is quiet."""


def drawn_order(rule: UntilSettled, digests: Sequence[str]) -> tuple[str, ...]:
    """A random order of tasks that does not depend on the order in which they were named."""
    order = sorted(set(digests))
    Random(f"order {rule.seed}").shuffle(order)  # noqa: S311 - a draw of tasks, not a secret
    return tuple(order)


def looks(tasks: int, attempts: int) -> tuple[int, ...]:
    """After how many pairs to look: every half pass over the tasks at first, then more and more rarely."""
    points = {math.ceil(tasks * half / 2) for half in range(1, 2 * min(attempts, QUIET_AFTER) + 1)}
    attempt = QUIET_AFTER + 1
    while attempt < attempts:
        points.add(attempt * tasks)
        attempt = max(attempt + 1, math.floor(attempt * 1.25))
    return tuple(sorted(points | {attempts * tasks}))


def course(rule: UntilSettled, digests: Sequence[str], attempts: int, ended: Ended) -> Course:
    """Replays all looks that are complete, and stops at the first one that settles it."""
    tasks = [_PairedTask(digest, attempts, ended) for digest in drawn_order(rule, digests)]
    points = looks(len(tasks), attempts)
    # Each task has replays of its own, so that later tasks and outcomes do not change an earlier look.
    flips = [Random(f"flip {rule.seed} {task.digest}").getrandbits(REPLAYS) for task in tasks]  # noqa: S311
    test = SequentialSignFlip(flips)
    so_far = Course(finding=Finding.OPEN, looks_planned=len(points))
    for number, point in enumerate(points):
        if not all(tasks[index].has(attempt) for index, attempt in _places(len(tasks), 0, point)):
            return so_far.model_copy(update={"wanted": _wanted(tasks, points, number), "quiet": _quiet(tasks)})
        values = [task.difference(_attempts_at(point, index, len(tasks))) for index, task in enumerate(tasks)]
        finding = _finding(rule, test, values, point, points)
        so_far = so_far.model_copy(update={"finding": finding, "difference": _mean(values), "looks_made": number + 1})
        if finding.settled:
            return so_far
    return so_far.model_copy(update={"finding": Finding.NOT_SETTLED})


class _PairedTask:
    """One task: which of its pairs ended, and what they came to."""

    def __init__(self, digest: str, attempts: int, ended: Ended) -> None:
        self.digest = digest
        self._attempts = attempts
        self._pairs: dict[int, tuple[bool | None, bool | None]] = {}
        for attempt in range(1, attempts + 1):
            one, other = (digest, 0, attempt), (digest, 1, attempt)
            if one in ended and other in ended:
                self._pairs[attempt] = (ended[one], ended[other])
        first = [self._pairs.get(attempt) for attempt in range(1, QUIET_AFTER + 1)]
        self.judged = None not in first
        """Whether it is known if the task is quiet."""
        self.quiet = first in ([(True, True)] * QUIET_AFTER, [(False, False)] * QUIET_AFTER)

    def has(self, attempt: int) -> bool:
        """Whether the pair ended or is not needed."""
        return attempt in self._pairs or (self.quiet and attempt > QUIET_AFTER)

    def may_start(self, attempt: int) -> bool:
        return not self.has(attempt) and (attempt <= QUIET_AFTER or self.judged)

    def not_needed(self) -> list[Pair]:
        last = self._attempts if self.quiet else 0
        return [Pair(self.digest, attempt) for attempt in range(QUIET_AFTER + 1, last + 1)]

    def difference(self, attempts: int) -> Fraction | None:
        """Mean of A minus B over the first attempts; ``None`` if no pair of them is valid."""
        if self.quiet:
            return Fraction(0) if attempts else None
        found = [self._pairs[attempt] for attempt in range(1, attempts + 1)]
        valid = [int(a) - int(b) for a, b in found if a is not None and b is not None]
        return Fraction(sum(valid), len(valid)) if valid else None


def _finding(
    rule: UntilSettled, test: SequentialSignFlip, values: Sequence[Fraction | None], point: int, points: Sequence[int]
) -> Finding:
    sizes = _on_common_scale(values)
    if test.look(sizes, rule.alpha * (point / points[-1]) ** SPENDING):
        return Finding.A_BETTER if sum(sizes) > 0 else Finding.B_BETTER
    # Later attempts are not given to every task, so that the mean over them would be a little too small.
    early = [each for each in points if each <= QUIET_AFTER * len(values)]
    known = [float(value) for value in values if value is not None]
    small = point in early and evidence_of_smallness(known, rule.margin / 100) >= len(early) / rule.alpha
    return Finding.WITHIN_MARGIN if small else Finding.OPEN


def _on_common_scale(values: Sequence[Fraction | None]) -> list[int]:
    """Differences as whole numbers, so that equal sums compare equal. A task without a valid pair counts 0."""
    scale = min(math.lcm(*(value.denominator for value in values if value)), _FINEST_SCALE)
    return [round(value * scale) if value else 0 for value in values]


def _mean(values: Sequence[Fraction | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(sum(known) / len(known)) if known else None


def _attempts_at(point: int, index: int, tasks: int) -> int:
    """How many attempts at the task with this index are among the first ``point`` pairs."""
    whole, rest = divmod(point, tasks)
    return whole + (index < rest)


def _places(tasks: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Index of the task and attempt of these pairs, in the order of the plan."""
    return ((place % tasks, place // tasks + 1) for place in range(start, end))


def _wanted(tasks: Sequence[_PairedTask], points: Sequence[int], number: int) -> tuple[Pair, ...]:
    """The pairs before the next look that have not ended; once most have, those before the look after it, too."""
    start, end = (points[number - 1] if number else 0), points[number]
    there = sum(tasks[index].has(attempt) for index, attempt in _places(len(tasks), start, end))
    if there >= _RELEASE_AHEAD * (end - start) and number + 1 < len(points):
        end = points[number + 1]
    places = _places(len(tasks), 0, end)
    return tuple(Pair(tasks[index].digest, attempt) for index, attempt in places if tasks[index].may_start(attempt))


def _quiet(tasks: Sequence[_PairedTask]) -> tuple[Pair, ...]:
    return tuple(pair for task in tasks for pair in task.not_needed())
