"""Tasks × compared pairs: where each B differs from its A. Used by the API and the page.

Pure. A row says how much its worst pair lost and how far all sides are apart, so that every reader sorts alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from fractions import Fraction

from seatrial.domain.comparisons.comparison import Comparison, Side
from seatrial.domain.frozen import Frozen
from seatrial.domain.reports.fact import Basis


class NotCompared(StrEnum):
    """Why a pair does not compare a task."""

    ABSENT = "absent"
    """Neither side has it."""
    ONLY_A = "only_a"
    ONLY_B = "only_b"
    CHANGED = "changed"
    """The task has other content on the other side."""
    NO_VALID_TRIAL = "no_valid_trial"


class MatrixCell(Frozen):
    """One task of one pair."""

    passed_a: int = 0
    trials_a: int = 0
    passed_b: int = 0
    trials_b: int = 0
    b_minus_a: float | None = None
    """``None`` if the pair does not compare this task."""
    not_compared: NotCompared | None = None


class MatrixRow(Frozen):
    task: str
    cells: tuple[MatrixCell, ...]
    """One for each pair, in their order."""
    worst: float | None = None
    """The smallest ``b_minus_a``: below 0 if a pair lost."""
    disagreement: float | None = None
    """The largest share that a side passed minus the smallest one."""


def difference_matrix(pairs: Sequence[tuple[Side, Side]], comparisons: Sequence[Comparison]) -> tuple[MatrixRow, ...]:
    """``comparisons`` of these pairs. The largest losses come first; tasks that no pair compares come last."""
    columns = [_column(a, b, found) for (a, b), found in zip(pairs, comparisons, strict=True)]
    tasks = sorted({task for column in columns for task in column})
    absent = MatrixCell(not_compared=NotCompared.ABSENT)
    rows = (_row(task, tuple(column.get(task, absent) for column in columns)) for task in tasks)
    return tuple(sorted(rows, key=lambda row: (row.worst is None, row.worst or 0.0, row.task)))


def _column(a: Side, b: Side, found: Comparison) -> dict[str, MatrixCell]:
    why = _reasons(found)
    cells = {
        row.task: MatrixCell(
            passed_a=row.passed_a,
            trials_a=row.trials_a,
            passed_b=row.passed_b,
            trials_b=row.trials_b,
            b_minus_a=-row.a_minus_b if row.a_minus_b else 0.0,
        )
        for row in found.tasks
    }
    return cells | {task: _left_out(a, b, task, reason, found.basis) for task, reason in why.items()}


def _reasons(found: Comparison) -> dict[str, NotCompared]:
    left_out = found.left_out
    groups: Iterable[tuple[NotCompared, tuple[str, ...]]] = (
        (NotCompared.ONLY_A, left_out.only_a),
        (NotCompared.ONLY_B, left_out.only_b),
        (NotCompared.CHANGED, left_out.changed),
        (NotCompared.NO_VALID_TRIAL, left_out.no_valid_trial),
    )
    return {task: reason for reason, tasks in groups for task in tasks}


def _left_out(a: Side, b: Side, task: str, reason: NotCompared, basis: Basis) -> MatrixCell:
    (passed_a, trials_a), (passed_b, trials_b) = (
        side.tasks[task].passes(basis) if task in side.tasks else (0, 0) for side in (a, b)
    )
    return MatrixCell(passed_a=passed_a, trials_a=trials_a, passed_b=passed_b, trials_b=trials_b, not_compared=reason)


def _row(task: str, cells: tuple[MatrixCell, ...]) -> MatrixRow:
    compared = [cell for cell in cells if cell.b_minus_a is not None]
    shares = [
        Fraction(passed, trials)
        for cell in compared
        for passed, trials in ((cell.passed_a, cell.trials_a), (cell.passed_b, cell.trials_b))
    ]
    return MatrixRow(
        task=task,
        cells=cells,
        worst=min((cell.b_minus_a for cell in compared if cell.b_minus_a is not None), default=None),
        disagreement=float(max(shares) - min(shares)) if shares else None,
    )
