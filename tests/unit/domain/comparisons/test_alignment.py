"""Steps of two trials side by side: what is the same is opposite, what differs is marked, nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.domain.comparisons import alignment
from seatrial.domain.comparisons.alignment import AlignedStep, Alignment, align


def steps(actions: str) -> list[AlignedStep]:
    """One letter for each step; a capital is the user's."""
    return [AlignedStep(source="user" if one.isupper() else "agent", action=one) for one in actions]


def written(found: Alignment, left: str, right: str) -> str:
    """``a=a b≠x c-`` for rows."""
    ones = [left[row.left - 1] if row.left else "-" for row in found.rows]
    others = [right[row.right - 1] if row.right else "-" for row in found.rows]
    signs = ["=" if row.same else "≠" for row in found.rows]
    return " ".join(map("".join, zip(ones, signs, others, strict=True)))


@pytest.mark.parametrize(
    ("left", "right", "rows", "first"),
    [
        ("abc", "abc", "a=a b=b c=c", None),
        ("abc", "axc", "a=a b≠x c=c", 1),
        ("abcd", "abxycd", "a=a b=b -≠x -≠y c=c d=d", 2),
        ("abxcd", "abcd", "a=a b=b x≠- c=c d=d", 2),
        ("ab", "abc", "a=a b=b -≠c", 2),
        ("", "ab", "-≠a -≠b", 0),
        ("", "", "", None),
        ("abab", "ba", "a≠- b=b a=a b≠-", 0),
        ("Uab", "Vab", "U≠V a=a b=b", None),
        ("aUb", "ac", "a=a U≠- b≠c", 2),
        ("Uab", "Vax", "U≠V a=a b≠x", 2),
    ],
)
def test_rows_and_the_first_difference(left: str, right: str, rows: str, first: int | None) -> None:
    """Another prompt is no difference of the agents."""
    found = align(steps(left), steps(right))
    assert written(found, left, right) == rows
    assert found.first_difference == first


def test_the_same_action_with_another_output_is_told() -> None:
    one, other = (AlignedStep(source="agent", action="date", output=output) for output in ("Mon", "Tue"))
    [row] = align([one], [other]).rows
    assert (row.same, row.same_output) == (True, False)
    assert align([one], [one]).rows[0].same_output


@given(st.text("abcU", max_size=12), st.text("abcU", max_size=12))
def test_every_step_is_in_one_row_and_in_order(left: str, right: str) -> None:
    found = align(steps(left), steps(right))
    assert [row.left for row in found.rows if row.left] == list(range(1, len(left) + 1))
    assert [row.right for row in found.rows if row.right] == list(range(1, len(right) + 1))
    assert all(left[row.left - 1] == right[row.right - 1] for row in found.rows if row.same and row.left and row.right)
    mirrored = align(steps(right), steps(left))
    assert sum(row.same for row in mirrored.rows) == sum(row.same for row in found.rows), "as many are matched"
    assert (mirrored.first_difference is None) == (found.first_difference is None)


def test_a_trajectory_of_any_length_takes_a_moment() -> None:
    """Beyond the limit steps are opposite by their order, and the list is cut."""
    left, right = [[AlignedStep(source="agent", action=(side, n)) for n in range(30_000)] for side in (0, 1)]
    found = align(left, right)
    assert not found.matched
    assert (len(found.rows), found.left_off) == (alignment.MOST_ROWS, 20_000)
    assert found.first_difference == 0
    few = align(left[:900], [*right[:10], *left[10:900]])
    assert few.matched and sum(row.same for row in few.rows) == 890
