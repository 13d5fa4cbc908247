"""Figures that misled once. Each test names one."""

from __future__ import annotations

import pytest

from seatrial.domain.comparisons.comparison import compare
from seatrial.domain.comparisons.verdict import verdict
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.reports.report import report
from seatrial.domain.reports.score import Bounds
from seatrial.domain.task import TaskRef
from tests.sides import side
from tests.unit.domain.reports.test_report import only, trials


def test_several_configurations_have_no_common_score() -> None:
    """Oracle and nop together are not "50 %"."""
    facts = (
        trials("a", "PP", "oracle") + trials("a", "FF", "nop") + trials("b", "PP", "oracle") + trials("b", "FF", "nop")
    )
    found = report(facts, order=("nop", "oracle"))
    assert [(each.label, each.headline.value) for each in found.configurations] == [("oracle", 1.0), ("nop", 0.0)]
    assert not {"score", "value", "headline", "coverage", "mean_reward"} & set(found.model_dump())


def test_errors_are_not_zeros_in_the_headline() -> None:
    line = only(trials("a", "PPSS") + trials("b", "PFSS")).headline
    assert (line.value, line.coverage, line.leaderboard) == (0.75, 0.5, 0.375)


@pytest.mark.parametrize("letters", ["SSSS", "CCCC", "...."])
def test_nothing_valid_is_not_scored_and_never_zero(letters: str) -> None:
    line = only(trials("a", letters) + trials("b", letters)).headline
    assert (line.value, line.low, line.high, line.coverage) == (None, None, None, 0.0)


def test_many_errors_come_with_bounds() -> None:
    line = only(trials("a", "PPSS") + trials("b", "FFFF")).headline
    assert line.bounds == Bounds(low=0.25, high=0.5, trials=2)
    few = only([fact for index in range(10) for fact in trials(f"t{index}", "PPPPF")] + trials("z", "PPPPS"))
    assert few.headline.bounds is None and few.bounds is not None, "in the report, but not in the headline"


def test_half_of_the_trials_are_not_full_coverage() -> None:
    assert only(trials("a", "PP..") + trials("b", "PF..")).coverage == 0.5


def test_trials_that_the_store_lost_are_not_covered() -> None:
    spec = JobSpec(tasks=(TaskRef(name="a", digest="sha256:a"),), agents=(AgentSpec(name="x"),), attempts=4)
    found = report(trials("a", "PP"), spec=spec)
    assert (found.configurations[0].coverage, found.removed) == (0.5, 2)
    assert found.notices == ("2 attempts were planned and removed later.",)
    assert found.rules is not None and "every planned trial" in [rule.rule for rule in found.rules.broken]


def test_an_interval_without_a_width_is_not_shown() -> None:
    """ "-100 to -100" with p = 0.5."""
    found = compare(side("A", trials("a", "FF") + trials("b", "FF")), side("B", trials("a", "PP") + trials("b", "PP")))
    assert (found.a_minus_b, found.interval) == (-1.0, None)
    assert "same amount" in found.unavailable["interval"] and "100.0 to" not in verdict(found)


def test_headline_row_and_report_have_the_same_interval() -> None:
    one = only(trials("a", "PPF"))
    assert (one.headline.low, one.valid.tasks_as_sample) == (None, None)
    assert one.headline.no_interval == one.valid.unavailable["tasks_as_sample"]
    two = only(trials("a", "PPF") + trials("b", "PFF"))
    assert two.valid.tasks_as_sample is not None
    assert (two.headline.low, two.headline.high) == (two.valid.tasks_as_sample.low, two.valid.tasks_as_sample.high)


def test_a_cancelled_job_says_so() -> None:
    assert report(trials("a", "PPCC")).notices == ("2 of 4 planned trials were cancelled.",)
