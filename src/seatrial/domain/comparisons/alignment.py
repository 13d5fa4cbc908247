"""Puts the steps of two trials side by side: steps with the same action are opposite each other.

Pure. Used by ``divergence``. Steps come from untrusted agents, so there may be any number of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from seatrial.domain.frozen import Frozen

MOST_CELLS = 1_000_000
"""Up to this product of both numbers of steps, steps are matched again after a difference; beyond, they are opposite
each other by their order."""
MOST_ROWS = 10_000


class AlignedStep(NamedTuple):
    """What alignment looks at in a step."""

    source: str
    action: Hashable
    """Steps with equal actions are the same."""
    output: Hashable = None

    @property
    def by_agent(self) -> bool:
        return self.source == "agent"


class StepPair(Frozen):
    """One row. Steps are identified by their place in the trajectory, counted from 1."""

    left: int | None
    right: int | None
    same: bool
    """Whether both did the same."""
    same_output: bool = True
    """Whether both then saw the same."""


class Alignment(Frozen):
    rows: tuple[StepPair, ...] = ()
    first_difference: int | None = None
    """Index of the first row in which the agents acted differently; ``None`` if there is none."""
    matched: bool = True
    """Whether steps were matched again after a difference. False: there were too many steps."""
    left_off: int = 0
    """Rows that are not listed."""


def align(left: Sequence[AlignedStep], right: Sequence[AlignedStep]) -> Alignment:
    start = _shared_start(left, right)
    end = _shared_end(left, right, start)
    middle = (len(left) - start - end) * (len(right) - start - end)
    matched = middle <= MOST_CELLS
    inner = (range(start, len(left) - end), range(start, len(right) - end))
    anchors = [(place, place) for place in range(start)]
    anchors += _common(left, right, *inner) if matched else []
    anchors += [(len(left) - back, len(right) - back) for back in range(end, 0, -1)] if matched else []
    rows = _rows(left, right, anchors)
    differing = (place for place, row in enumerate(rows) if not row.same and _by_agent(row, left, right))
    return Alignment(
        rows=tuple(rows[:MOST_ROWS]),
        first_difference=next(differing, None),
        matched=matched,
        left_off=max(0, len(rows) - MOST_ROWS),
    )


def _same(one: AlignedStep, other: AlignedStep) -> bool:
    return (one.source, one.action) == (other.source, other.action)


def _shared_start(left: Sequence[AlignedStep], right: Sequence[AlignedStep]) -> int:
    shared = 0
    while shared < min(len(left), len(right)) and _same(left[shared], right[shared]):
        shared += 1
    return shared


def _shared_end(left: Sequence[AlignedStep], right: Sequence[AlignedStep], start: int) -> int:
    shared = 0
    while shared < min(len(left), len(right)) - start and _same(left[-1 - shared], right[-1 - shared]):
        shared += 1
    return shared


def _common(
    left: Sequence[AlignedStep], right: Sequence[AlignedStep], inner_left: range, inner_right: range
) -> list[tuple[int, int]]:
    """A longest common subsequence: the places of steps that are the same, in order."""
    lengths = [[0] * (len(inner_right) + 1) for _ in range(len(inner_left) + 1)]
    numbers: dict[Hashable, int] = {}
    ones, others = (
        [numbers.setdefault((steps[place].source, steps[place].action), len(numbers)) for place in places]
        for steps, places in ((left, inner_left), (right, inner_right))
    )
    for row in range(len(ones) - 1, -1, -1):
        here, below, wanted = lengths[row], lengths[row + 1], ones[row]
        for column in range(len(others) - 1, -1, -1):
            if others[column] == wanted:
                here[column] = below[column + 1] + 1
            else:
                here[column] = max(below[column], here[column + 1])
    found, row, column = [], 0, 0
    while row < len(ones) and column < len(others):
        if ones[row] == others[column]:
            found.append((inner_left[row], inner_right[column]))
            row, column = row + 1, column + 1
        elif lengths[row + 1][column] >= lengths[row][column + 1]:
            row += 1
        else:
            column += 1
    return found


def _rows(
    left: Sequence[AlignedStep], right: Sequence[AlignedStep], anchors: Sequence[tuple[int, int]]
) -> list[StepPair]:
    rows: list[StepPair] = []
    at_left = at_right = 0
    for here, there in (*anchors, (len(left), len(right))):
        rows += _between(left, right, range(at_left, here), range(at_right, there))
        if here < len(left):
            same_output = left[here].output == right[there].output
            rows.append(StepPair(left=here + 1, right=there + 1, same=True, same_output=same_output))
        at_left, at_right = here + 1, there + 1
    return rows


def _between(left: Sequence[AlignedStep], right: Sequence[AlignedStep], lefts: range, rights: range) -> list[StepPair]:
    """Different steps between two that are the same: opposite each other by their order, but never an agent's step
    and another's."""
    rows, row, column = [], 0, 0
    while row < len(lefts) or column < len(rights):
        one = left[lefts[row]] if row < len(lefts) else None
        other = right[rights[column]] if column < len(rights) else None
        together = one is not None and other is not None and one.by_agent == other.by_agent
        take_left = one is not None and (together or other is None or not one.by_agent)
        take_right = other is not None and (together or not take_left)
        rows.append(
            StepPair(
                left=lefts[row] + 1 if take_left else None,
                right=rights[column] + 1 if take_right else None,
                same=together and one is not None and other is not None and _same(one, other),
            )
        )
        row, column = row + take_left, column + take_right
    return rows


def _by_agent(row: StepPair, left: Sequence[AlignedStep], right: Sequence[AlignedStep]) -> bool:
    return (row.left is not None and left[row.left - 1].by_agent) or (
        row.right is not None and right[row.right - 1].by_agent
    )
