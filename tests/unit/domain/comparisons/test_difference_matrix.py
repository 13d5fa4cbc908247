"""Task × pair: losses first, disagreement over all sides, and what is not compared says why."""

from __future__ import annotations

import pytest

from seatrial.domain.comparisons.comparison import Side, against_first, compare_all
from seatrial.domain.comparisons.difference_matrix import MatrixRow, NotCompared, difference_matrix
from seatrial.domain.comparisons.effort import Effort, effort_differences
from seatrial.domain.reports.fact import Counts


def side(label: str, digests: str = "", **tasks: tuple[int, int]) -> Side:
    """Passes and valid trials by task. ``digests``: tasks with other content."""
    return Side(
        label=label,
        configuration=label,
        tasks={
            task: Counts(planned=5, ended=5, passed=passed, failed=trials - passed, valid=trials)
            for task, (passed, trials) in tasks.items()
        },
        digests={task: f"sha256:{task}{'x' if task in digests else ''}" for task in tasks},
    )


def matrix(*sides: Side) -> tuple[MatrixRow, ...]:
    pairs = against_first(sides)
    return difference_matrix(pairs, compare_all(pairs))


def test_the_largest_loss_of_any_pair_comes_first() -> None:
    a = side("A", one=(3, 3), two=(1, 2), three=(0, 3), four=(2, 2))
    b = side("B", one=(2, 3), two=(1, 2), three=(3, 3), four=(2, 2))
    c = side("C", one=(3, 3), two=(0, 2), three=(0, 3), four=(2, 2))
    found = matrix(a, b, c)
    assert [row.task for row in found] == ["two", "one", "four", "three"]
    assert [row.worst for row in found] == [-0.5, pytest.approx(-1 / 3), 0, 0]
    assert [row.disagreement for row in found] == [0.5, pytest.approx(1 / 3), 0, 1], "over all three"
    assert [cell.b_minus_a for cell in found[0].cells] == [0, -0.5]
    assert (found[1].cells[0].passed_b, found[1].cells[0].trials_b) == (2, 3)


def test_what_one_pair_cannot_compare_says_why_and_comes_last() -> None:
    a = side("A", both=(1, 1), mine=(1, 1), changed=(1, 1), silent=(1, 1))
    b = side("B", "changed", both=(1, 1), other=(0, 1), changed=(1, 1), silent=(0, 0))
    found = {row.task: row.cells[0] for row in matrix(a, b)}
    assert next(iter(found)) == "both"
    assert {task: cell.not_compared for task, cell in found.items()} == {
        "both": None,
        "changed": NotCompared.CHANGED,
        "mine": NotCompared.ONLY_A,
        "other": NotCompared.ONLY_B,
        "silent": NotCompared.NO_VALID_TRIAL,
    }
    assert found["mine"].b_minus_a is None
    assert (found["mine"].trials_a, found["mine"].trials_b) == (1, 0)
    rows = matrix(a, b, side("C", far=(1, 1)))
    assert next(row for row in rows if row.task == "far").cells[0].not_compared is NotCompared.ABSENT


def test_efforts_are_means_over_tasks_that_both_sides_reported() -> None:
    a = {"one": Effort(cost_usd=1.0, seconds=10), "two": Effort(cost_usd=2.0), "three": Effort(tokens=5)}
    b = {"one": Effort(cost_usd=2.0, seconds=4), "two": Effort(cost_usd=5.0, seconds=3)}
    found = effort_differences(["one", "two", "three"], a, b)
    assert found.cost_usd is not None and found.cost_usd.interval is not None
    assert (found.cost_usd.a, found.cost_usd.b, found.cost_usd.a_minus_b, found.cost_usd.tasks) == (1.5, 3.5, -2.0, 2)
    assert found.cost_usd.interval.low == pytest.approx(-2 - 12.7062, abs=1e-3), "t with one degree of freedom, se 1"
    assert found.seconds is not None
    assert (found.seconds.a_minus_b, found.seconds.tasks, found.seconds.interval) == (6, 1, None)
    assert found.tokens is None and set(found.unavailable) == {"tokens"}
