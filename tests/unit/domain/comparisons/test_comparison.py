"""A against B: which tasks count, what the difference is, and that the sentence never says more than the numbers."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from seatrial.domain.comparisons.comparison import Comparison, Side, compare, compare_all, pair_up, pairs_within
from seatrial.domain.comparisons.verdict import p_text, points, significant, verdict
from seatrial.domain.reports.fact import Basis, Counts, TrialFact
from seatrial.domain.statistics.significance import TestKind
from seatrial.domain.trial import Cause, Outcome
from tests.sides import side


def tallied(label: str, **tasks: tuple[int, int]) -> Side:
    """Passes and valid trials by task."""
    return Side(
        label=label,
        configuration=label,
        tasks={
            task: Counts(planned=trials, ended=trials, passed=passed, failed=trials - passed, valid=trials)
            for task, (passed, trials) in tasks.items()
        },
        digests={task: f"sha256:{task}" for task in tasks},
    )


def numbered(label: str, passes: list[int], trials: int) -> Side:
    return tallied(label, **{f"t{index:03}": (passed, trials) for index, passed in enumerate(passes)})


rates = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=2, max_size=30)


@settings(max_examples=25)
@given(rates)
def test_the_difference_is_the_paired_one_of_scipy(counts: list[tuple[int, int]]) -> None:
    a = numbered("A", [one for one, _ in counts], 5)
    b = numbered("B", [other for _, other in counts], 4)
    differences = np.array([one / 5 - other / 4 for one, other in counts])
    found = compare(a, b)
    assert found.a_minus_b == pytest.approx(float(differences.mean()), abs=1e-12)
    error = float(stats.sem(differences))
    assert (found.interval is None) == (len({one * 4 - other * 5 for one, other in counts}) == 1)
    if found.interval is None:
        assert "same amount" in found.unavailable["interval"]
    else:
        assert found.interval.standard_error == pytest.approx(error, abs=1e-9)
        low, high = stats.t.interval(0.95, len(differences) - 1, loc=differences.mean(), scale=error)
        assert (found.interval.low, found.interval.high) == pytest.approx((max(-1, low), min(1, high)))
    swapped = compare(b, a)
    assert swapped.a_minus_b == pytest.approx(-(found.a_minus_b or 0), abs=1e-12)
    assert swapped.significance is not None
    assert found.significance is not None
    assert swapped.significance.p == pytest.approx(found.significance.p)


def test_mcnemar_over_the_tasks_on_which_one_side_is_ahead_is_that_of_statsmodels() -> None:
    a, b = numbered("A", [5, 4, 3, 5, 2, 0, 1, 4, 5], 5), numbered("B", [3, 4, 1, 2, 3, 0, 0, 1, 2], 5)
    found = compare(a, b)
    assert (found.ahead_a, found.ahead_b) == (6, 1)
    assert found.mcnemar is not None
    assert found.mcnemar.p == pytest.approx(statsmodels_mcnemar([[0, 6], [1, 2]], exact=True).pvalue)
    assert found.bootstrap is not None and found.interval is not None
    assert found.bootstrap.low == pytest.approx(found.interval.low, abs=0.15)


def test_single_trials_are_tested_with_mcnemar_and_more_with_sign_flips() -> None:
    single = compare(numbered("A", [1, 1, 1, 0, 1], 1), numbered("B", [0, 0, 1, 0, 1], 1))
    assert single.significance is not None
    assert single.significance.test is TestKind.MCNEMAR
    assert single.significance.p == pytest.approx(float(stats.binomtest(2, 2, 0.5).pvalue))
    several = compare(numbered("A", [1, 1, 1, 0, 1], 1), numbered("B", [0, 0, 1, 0, 1], 2))
    assert several.significance is not None
    assert several.significance.test is TestKind.SIGN_FLIP


def test_tasks_that_cannot_be_compared_are_named() -> None:
    a = tallied("A", common=(1, 2), mine=(1, 2), edited=(1, 2), broken=(0, 0), other=(2, 2))
    b = tallied("B", common=(2, 2), yours=(1, 2), edited=(1, 2), broken=(1, 2), other=(2, 2))
    b = b.model_copy(update={"digests": {**b.digests, "edited": "sha256:new"}})
    found = compare(a, b)
    assert {row.task for row in found.tasks} == {"common", "other"}
    assert (found.left_out.only_a, found.left_out.only_b) == (("mine",), ("yours",))
    assert (found.left_out.changed, found.left_out.no_valid_trial) == (("edited",), ("broken",))
    by_name = compare(a, b, same_name_is_enough=True)
    assert by_name.left_out.changed == ()
    assert {row.task for row in by_name.tasks} == {"common", "other", "edited"}


def test_tasks_are_sorted_by_regression() -> None:
    a = tallied("A", better=(0, 5), same=(2, 5), worst=(5, 5), worse=(3, 5))
    b = tallied("B", better=(4, 5), same=(2, 5), worst=(0, 5), worse=(2, 5))
    assert [row.task for row in compare(a, b).tasks] == ["worst", "worse", "same", "better"]


def test_faults_of_ours_count_only_on_the_leaderboard_basis() -> None:
    def facts(letters: str, task: str) -> list[TrialFact]:
        outcomes = {"P": Outcome.PASSED, "F": Outcome.FAILED, "E": Outcome.ERROR}
        return [
            TrialFact(
                task=task,
                configuration="x",
                attempt=index,
                outcome=outcomes[letter],
                cause=Cause.LLM if letter == "E" else None,
            )
            for index, letter in enumerate(letters)
        ]

    a = side("A", facts("PPPP", "one") + facts("PF", "two"))
    b = side("B", facts("PPEE", "one") + facts("PF", "two"))
    assert compare(a, b).a_minus_b == 0
    assert compare(a, b, basis=Basis.LEADERBOARD).a_minus_b == pytest.approx(0.25)


def test_several_pairs_are_corrected_after_holm() -> None:
    a = numbered("A", [4, 5, 4, 5, 3, 5, 4, 5], 5)
    b = numbered("B", [2, 3, 3, 2, 1, 4, 3, 3], 5)
    c = numbered("C", [3, 5, 4, 4, 3, 5, 4, 5], 5)
    (alone,) = compare_all([(a, b)])
    assert alone.p_holm is None
    assert alone.p == alone.significance.p if alone.significance else False
    ab, ac, bc = compare_all(pairs_within([a, b, c]))
    p_values = [each.significance.p for each in (ab, ac, bc) if each.significance]
    assert ab.p_holm == pytest.approx(3 * min(p_values))
    assert ac.p_holm == pytest.approx(max(p_values))
    assert all((each.p_holm or 0) >= p for each, p in zip((ab, ac, bc), p_values, strict=True))
    assert "after Holm over 3 pairs" in verdict(ab)


def test_the_same_configurations_of_two_jobs_are_paired() -> None:
    left, right = [tallied("x"), tallied("y")], [tallied("y"), tallied("z")]
    assert [(one.label, other.label) for one, other in pair_up(left, right)] == [("y", "y")]
    assert len(pair_up(left, [tallied("z")])) == 2


@settings(max_examples=25)
@given(rates, st.randoms(use_true_random=False))
def test_order_does_not_matter_and_json_is_finite(counts: list[tuple[int, int]], rng: random.Random) -> None:
    named = {f"t{index}": count for index, count in enumerate(counts)}
    shuffled = list(named)
    rng.shuffle(shuffled)
    found = compare(
        tallied("A", **{name: (named[name][0], 5) for name in named}),
        tallied("B", **{name: (named[name][1], 4) for name in named}),
    )
    again = compare(
        tallied("A", **{name: (named[name][0], 5) for name in shuffled}),
        tallied("B", **{name: (named[name][1], 4) for name in shuffled}),
    )
    assert again == found
    assert Comparison.model_validate_json(found.model_dump_json()) == found
    json.dumps(found.model_dump(mode="json"), allow_nan=False)
    assert verdict(found).endswith(".")


def test_a_clear_difference_is_said_with_its_size_and_its_limits() -> None:
    base = [index % 5 for index in range(60)]
    sentence = verdict(
        compare(numbered("old", base, 5), numbered("new", [each + 1 for each in base[:40]] + base[40:], 5))
    )
    assert sentence.startswith("new is better than old by 13.3 points (95 % interval 10.9 to 15.8, p < 0.0001); ")
    assert sentence.endswith("with 60 tasks a difference under 10.2 points could not have been seen.")


def test_a_regression_names_the_other_side() -> None:
    base = [index % 5 for index in range(60)]
    comparison = compare(numbered("old", [each + 1 for each in base], 5), numbered("new", base[:50] + [3] * 10, 5))
    assert verdict(comparison).startswith("old is better than new by ")
    assert significant(comparison)


def test_a_difference_that_chance_explains_is_not_called_one() -> None:
    rng = random.Random(3)
    a, b = ([rng.randint(0, 5) for _ in range(40)] for _ in range(2))
    comparison = compare(numbered("A", a, 5), numbered("B", b, 5))
    assert not significant(comparison)
    assert verdict(comparison).startswith("No difference can be told: ")
    assert "could not have been seen" in verdict(comparison)


def test_a_lucky_find_does_not_contradict_itself() -> None:
    """Significant, yet smaller than what is reliably found: the sentence must not say that it could not be seen."""
    a, b = [0] * 30, [1] * 8 + [0] * 21 + [1]
    a[29], b[29] = 1, 0
    comparison = compare(numbered("A", a, 1), numbered("B", b, 1))
    assert significant(comparison)
    assert comparison.detectable is not None
    assert abs(comparison.a_minus_b or 0) < comparison.detectable
    assert "is often missed" in verdict(comparison)
    assert "could not have been seen" not in verdict(comparison)


def test_too_little_data_is_said() -> None:
    comparison = compare(numbered("A", [5, 5, 4], 5), numbered("B", [0, 0, 4], 5))
    assert verdict(comparison).startswith("Too little data to tell A and B apart: A scored 66.7 points")


def test_equal_sides_are_called_the_same() -> None:
    comparison = compare(numbered("A", [5, 3, 4], 5), numbered("B", [5, 3, 4], 5))
    assert verdict(comparison).startswith("A and B scored the same on each of the 3 common tasks; with 3 tasks ")
    assert comparison.variances.assumed
    assert "(assuming usual variances)" in verdict(comparison)


def test_differences_that_cancel_out_are_no_lead() -> None:
    comparison = compare(numbered("A", [5, 0] * 10, 5), numbered("B", [0, 5] * 10, 5))
    assert verdict(comparison).startswith("No difference can be told: both scored the same on average (95 % interval ")


def test_one_task_and_no_task() -> None:
    one = compare(tallied("A", a=(4, 5)), tallied("B", a=(1, 5)))
    assert verdict(one) == (
        "On the only common task, a, A passed 4 of 5 trials and B 1 of 5; one task says nothing about others."
    )
    assert set(one.unavailable) == {"interval", "bootstrap", "significance", "mcnemar", "detectable"}
    none = compare(tallied("A", a=(4, 5)), tallied("B", b=(1, 5)))
    assert verdict(none).startswith("A and B have no task in common")
    assert none.a_minus_b is None
    assert "a_minus_b" in none.unavailable


@pytest.mark.parametrize(
    ("p", "text"), [(0.5, "p = 0.50"), (0.012, "p = 0.01"), (0.0042, "p = 0.0042"), (0.00001, "p < 0.0001")]
)
def test_p_values_are_not_rounded_to_nothing(p: float, text: str) -> None:
    assert p_text(p) == text


def test_points_have_a_real_minus_and_no_negative_zero() -> None:
    assert (points(0.042), points(-0.042), points(-0.0001)) == ("4.2", "−4.2", "0.0")
