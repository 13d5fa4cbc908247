"""Pace and time left: one of each, never shorter than what runs, and not restarted by a retry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from seatrial.domain.reports.progress import KnownDuration, Progress, RunningTrial, WorkLeft, progress

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
KIND = ("sha256:a", 0)
KNOWN = {KIND: KnownDuration(trials=4, mean=60.0, longest=90.0)}


def running(elapsed: float, kind: tuple[str, int] = KIND) -> RunningTrial:
    return RunningTrial(digest=kind[0], agent_index=kind[1], started_at=NOW - timedelta(seconds=elapsed))


def left(**work: object) -> float | None:
    return progress(WorkLeft(**work), NOW, ended=1, planned=9).seconds_left  # type: ignore[arg-type]


def test_the_time_left_is_never_shorter_than_what_runs() -> None:
    """Nine short trials that ended a moment ago say nothing about the long one that runs."""
    known = {
        KIND: KnownDuration(trials=9, mean=1.0, longest=1.0),
        ("b", 0): KnownDuration(trials=1, mean=900, longest=900),
    }
    assert left(running=(running(100, ("b", 0)),), durations=known, recently_ended=9) == pytest.approx(800)


@pytest.mark.parametrize(("elapsed", "expected"), [(20, 40), (70, 20), (90, 9), (1000, 100)])
def test_a_trial_that_takes_longer_than_usual_is_not_over(elapsed: float, expected: float) -> None:
    assert left(running=(running(elapsed),), durations=KNOWN) == pytest.approx(expected)


def test_what_waits_is_shared_by_what_runs() -> None:
    two = (running(0), running(0))
    assert left(running=two, waiting={KIND: 4}, durations=KNOWN) == pytest.approx((2 * 60 + 4 * 60) / 2)
    assert left(waiting={KIND: 4}, durations=KNOWN) == pytest.approx(240)
    assert left(running=two, waiting={("new", 1): 1}, durations=KNOWN) == pytest.approx(90), "as long as the others"


def test_without_anything_to_go_by_there_is_no_time_left() -> None:
    assert left(running=(running(5),)) is None
    assert left(durations=KNOWN) is None


@pytest.mark.parametrize(("minutes", "expected"), [(1, 12 / 60), (60, 12 / 300)])
def test_the_pace_is_that_of_the_last_minutes(minutes: int, expected: float) -> None:
    """A job that was retried after a day has the pace of now, not the average over the day."""
    work = WorkLeft(recently_ended=12, first_started_at=NOW - timedelta(minutes=minutes))
    assert progress(work, NOW, ended=12, planned=20).per_second == pytest.approx(expected)


def test_nothing_ended_lately_has_no_pace() -> None:
    idle = WorkLeft(first_started_at=NOW - timedelta(hours=1))
    assert progress(idle, NOW, ended=3, planned=9) == Progress(ended=3, planned=9)
