"""What a load test counts as lost and duplicated, and what it says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from benchmarks.load_report import LoadReport, RunSeen, Spread, TaskSeen, Timings, peak_of, report_of

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def run(number: int, status: str = "passed", tries: int = 1, grades: int = 1) -> RunSeen:
    return RunSeen(number, status, NOON, NOON + timedelta(seconds=number), tries, grades)


def reported(*runs: RunSeen, wanted: int = 3, refused: int = 0) -> LoadReport:
    return report_of("t", [TaskSeen("one", wanted, runs)], [], refused, Timings(), 2.0)


def test_a_clean_test() -> None:
    report = reported(run(1), run(2, "failed"), run(3, "error", tries=3, grades=0))
    assert (report.accepted, report.finished, report.lost, report.duplicated, report.clean) == (3, 3, 0, 0, True)
    assert (report.passed, report.failed, report.error, report.tried_again) == (1, 1, 1, 2)
    assert report.trials_per_sec == 1.5


@pytest.mark.parametrize(
    ("runs", "lost", "duplicated"),
    [
        ((run(1), run(2), run(3, "running")), 1, 0),
        ((run(1), run(2), run(3, "pending")), 1, 0),
        ((run(1), run(2)), 1, 0),
        ((), 3, 0),
        ((run(1), run(2), run(3), run(4)), 0, 1),
        ((run(1), run(2), run(3), run(3)), 0, 1),
        ((run(1), run(2), run(2)), 1, 1),
        ((run(1), run(2), run(3, tries=2, grades=2)), 0, 1),
    ],
)
def test_what_is_lost_and_what_is_there_twice(runs: tuple[RunSeen, ...], lost: int, duplicated: int) -> None:
    report = reported(*runs)
    assert (report.lost, report.duplicated, report.clean) == (lost, duplicated, False)
    assert f"lost            {lost}" in report.text() and f"duplicated      {duplicated}" in report.text()


def test_what_was_refused_is_not_clean_and_neither_is_nothing() -> None:
    assert not reported(run(1), run(2), run(3), refused=3).clean
    assert not report_of("t", [], [], 0, Timings(), 1.0).clean


def test_the_peak_counts_runs_at_one_moment() -> None:
    moments = [NOON + timedelta(seconds=n) for n in range(5)]
    one_after_another = [RunSeen(n, "passed", moments[n], moments[n + 1]) for n in range(4)]
    assert peak_of(one_after_another) == 1
    assert peak_of([run(1), run(2), run(3)]) == 3
    assert peak_of([RunSeen(1, "pending")]) == 0


def test_percentiles() -> None:
    assert Spread.of([]) is None
    assert Spread.of([float(n) for n in range(1, 101)]) == Spread(50.0, 95.0, 99.0)
    assert Spread.of([4.0]) == Spread(4.0, 4.0, 4.0)
