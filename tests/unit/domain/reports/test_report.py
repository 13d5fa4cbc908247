"""Reports: who counts in which score, what is not available and why, and that the order of trials changes nothing."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.reports.fact import TrialFact
from seatrial.domain.reports.report import ConfigurationReport, JobReport, Spread, report
from seatrial.domain.result import TestResult
from seatrial.domain.result import TestStatus as Status
from seatrial.domain.statistics.estimates import Method
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Mark, Outcome
from tests.counted_work import counted_work

LETTERS: dict[str, tuple[Outcome | None, Cause | None]] = {
    "P": (Outcome.PASSED, None),
    "F": (Outcome.FAILED, None),
    "S": (Outcome.ERROR, Cause.SANDBOX),
    "L": (Outcome.ERROR, Cause.LLM),
    "A": (Outcome.ERROR, Cause.AGENT),
    "?": (Outcome.ERROR, None),
    "C": (Outcome.CANCELLED, None),
    ".": (None, None),
}


def trials(task: str, letters: str, configuration: str = "x") -> list[TrialFact]:
    """One letter, one trial: passed, failed, sandbox, llm, agent, ? unknown cause, cancelled, . not ended."""
    return [
        TrialFact(
            task=task,
            configuration=configuration,
            attempt=attempt,
            digest=f"sha256:{task}",
            outcome=LETTERS[letter][0],
            cause=LETTERS[letter][1],
            reward={"P": 1.0, "F": 0.0}.get(letter),
        )
        for attempt, letter in enumerate(letters, start=1)
    ]


def only(facts: list[TrialFact]) -> ConfigurationReport:
    (configuration,) = report(facts).configurations
    return configuration


def test_the_score_three_ways() -> None:
    found = only(trials("a", "PPFS") + trials("b", "PFAA") + trials("c", "FFFF"))
    assert found.leaderboard.value == pytest.approx((2 / 4 + 1 / 4 + 0) / 3)
    assert found.valid.value == pytest.approx((2 / 3 + 1 / 4 + 0) / 3)  # the agent's own errors stay in
    assert found.coverage == pytest.approx(11 / 12)
    assert found.counts.errors == {"agent": 2, "sandbox": 1}
    assert (found.leaderboard.trials, found.valid.trials) == (12, 11)


def test_a_task_without_a_valid_trial_is_named() -> None:
    found = only(trials("a", "PP") + trials("b", "SL") + trials("c", "CC"))
    assert found.without_valid_trial == ("b", "c")
    assert found.leaderboard.value == pytest.approx(1 / 3)
    assert found.leaderboard.tasks == 3
    assert found.valid.value == 1.0
    assert found.valid.tasks == 1
    assert found.coverage == pytest.approx(2 / 6)


def test_cancelled_trials_are_counted_but_never_scored() -> None:
    found = only(trials("a", "PFCC") + trials("b", "PPPP"))
    assert found.counts.cancelled == 2
    assert found.leaderboard.value == pytest.approx((1 / 2 + 1) / 2)
    assert found.coverage == pytest.approx(6 / 8)


def test_during_a_run_scores_are_over_what_ended_and_coverage_over_the_plan() -> None:
    facts = trials("a", "PF..") + trials("b", "S...") + trials("c", "....")
    found = only(facts)
    assert not report(facts).complete
    assert found.coverage == pytest.approx(2 / 12)
    assert (found.headline.so_far, found.headline.ended, found.headline.planned) == (True, 3, 12)
    assert found.leaderboard.value == pytest.approx((1 / 2 + 0) / 2)
    assert found.pending == ("c",)
    assert found.without_valid_trial == ("b",)
    assert found.tasks[2].leaderboard is None


def test_an_error_of_unknown_cause_is_not_held_against_the_agent() -> None:
    found = only(trials("a", "P?") + trials("b", "PA"))
    assert found.counts.errors == {"agent": 1, "unknown": 1}
    assert found.valid.value == pytest.approx((1 + 0.5) / 2)


def test_the_interval_of_one_task_is_its_own() -> None:
    found = only(trials("a", "PPPFF"))
    assert found.leaderboard.tasks_as_sample is None
    assert found.leaderboard.unavailable == {"tasks_as_sample": "one task says nothing about others"}
    assert found.leaderboard.tasks_fixed is not None
    interval = found.tasks[0].interval
    assert interval is not None
    assert interval.method is Method.WILSON


def test_a_single_trial_a_task_has_no_run_to_run_interval() -> None:
    found = only(trials("a", "P") + trials("b", "FF") + trials("c", "P"))
    assert found.leaderboard.tasks_fixed is None
    assert found.leaderboard.unavailable["tasks_fixed"] == "needs 2 scored trials of every task; 2 of 3 have fewer"
    assert only(trials("a", "PP") + trials("b", "PF")).leaderboard.tasks_fixed is not None
    alike = only(trials("a", "PP") + trials("b", "FF")).leaderboard
    assert (alike.tasks_fixed, alike.unavailable["tasks_fixed"]) == (None, "no task both passed and failed")


def test_pass_rates_say_what_they_lack() -> None:
    found = only(trials("a", "PFFFFF") + trials("b", "PPPPPF"))
    rates = {rate.k: rate for rate in found.leaderboard.pass_rates}
    assert sorted(rates) == [1, 2, 5, 6, 10]
    assert rates[1].pass_at_k == found.leaderboard.value == rates[1].pass_hat_k
    assert rates[2].pass_at_k == pytest.approx((1 / 3 + 1) / 2)
    assert rates[5].pass_hat_k == pytest.approx((0 + 1 / 6) / 2)
    assert rates[6].pass_at_k == 1.0
    assert rates[10].pass_at_k is None
    assert rates[10].unavailable == "needs 10 scored trials of every task; 2 of 2 have fewer"


def test_faults_of_ours_lower_what_pass_at_k_of_valid_trials_can_say() -> None:
    found = only(trials("a", "PFFFS") + trials("b", "PPPPP"))
    at_five = {
        basis: next(rate for rate in score.pass_rates if rate.k == 5)
        for basis, score in (("leaderboard", found.leaderboard), ("valid", found.valid))
    }
    assert at_five["leaderboard"].pass_at_k == 1.0
    assert at_five["valid"].pass_at_k is None


def test_partial_rewards_have_a_mean() -> None:
    facts = [
        TrialFact(task="a", configuration="x", outcome=Outcome.FAILED, reward=0.5),
        TrialFact(task="a", configuration="x", outcome=Outcome.FAILED, reward=0.25),
        TrialFact(task="b", configuration="x", outcome=Outcome.PASSED, reward=1.0),
        TrialFact(task="b", configuration="x", outcome=Outcome.ERROR, cause=Cause.AGENT),
        TrialFact(task="b", configuration="x", outcome=Outcome.ERROR, cause=Cause.LLM),
        TrialFact(task="b", configuration="x", outcome=Outcome.FAILED, reward=math.nan),
    ]
    assert only(facts).mean_reward == pytest.approx((0.375 + 0.5) / 2)


def test_spending_and_durations() -> None:
    def fact(outcome: Outcome, seconds: float, cost: float | None) -> TrialFact:
        tokens = 10 if cost is not None else None
        return TrialFact(
            task="a", configuration="x", outcome=outcome, seconds=seconds, cost_usd=cost, input_tokens=tokens
        )

    facts = [fact(Outcome.PASSED, 1, 0.5), fact(Outcome.FAILED, 3, 0.25), fact(Outcome.ERROR, 2, None)]
    facts.append(fact(Outcome.CANCELLED, 99, 0.25))
    found = only(facts)
    assert found.spending.cost_usd == 1.0
    assert found.spending.priced == 3
    assert found.spending.cost_per_trial == pytest.approx(1 / 3)
    assert found.spending.cost_per_success == 1.0
    assert (found.spending.input_tokens, found.spending.output_tokens, found.spending.tokens) == (30, None, 30)
    assert found.durations is not None
    assert (found.durations.p50, found.durations.longest, found.durations.total) == (2, 3, 6)
    assert found.durations.p90 == pytest.approx(2.8)


def test_a_success_costs_what_its_own_trials_cost() -> None:
    """Passes of trials without a known cost would make the others look cheaper."""
    priced = [replace(fact, cost_usd=2.0) for fact in trials("a", "PF")]
    found = only(priced + trials("b", "PP")).spending
    assert (found.cost_usd, found.priced, found.cost_per_trial, found.cost_per_success) == (4.0, 2, 2.0, 4.0)


def test_the_spread_of_durations_tokens_and_costs() -> None:
    facts = [
        replace(fact, seconds=10.0 * number, input_tokens=100 * number, output_tokens=number, cost_usd=0.1 * number)
        for number, fact in enumerate(trials("a", "PFPFPSPFPC"), start=1)
    ]
    spread = only(facts).spread
    assert spread.seconds is not None and spread.tokens is not None and spread.cost_usd is not None
    assert (spread.seconds.values, spread.seconds.p50) == (9, 50.0), "a cancelled trial did not end by itself"
    assert (spread.tokens.values, spread.tokens.p50, spread.tokens.largest) == (10, 555.5, 1010)
    assert spread.cost_usd.p90 == pytest.approx(float(np.quantile([0.1 * n for n in range(1, 11)], 0.9)))
    assert only(trials("b", "PF")).spread == Spread()


@settings(max_examples=25)
@given(st.lists(st.text(st.sampled_from("PFSC"), min_size=1, max_size=3), min_size=1, max_size=3))
def test_bounds_are_those_of_every_way_to_fill_in_what_is_missing(tasks: list[str]) -> None:
    found = only([fact for index, letters in enumerate(tasks) for fact in trials(f"t{index}", letters)]).bounds
    gaps = [letter for letters in tasks for letter in letters if letter in "SC"]
    scores = []
    for filled in product("PF", repeat=len(gaps)):
        rest = iter(filled)
        rates = [
            sum((next(rest) if letter in "SC" else letter) == "P" for letter in letters) / len(letters)
            for letters in tasks
        ]
        scores.append(sum(rates) / len(rates))
    if found is None:
        assert not gaps
    else:
        assert (found.low, found.high, found.trials) == pytest.approx((min(scores), max(scores), len(gaps)))


def test_unknown_costs_are_not_zero() -> None:
    found = only(trials("a", "PF"))
    assert found.spending.cost_usd is None
    assert found.spending.unavailable["cost_per_success"] == "cost not reported"
    free = only([TrialFact(task="a", configuration="x", outcome=Outcome.FAILED, cost_usd=0.0)])
    assert free.spending.cost_usd == 0.0
    assert free.spending.unavailable == {"cost_per_success": "no trial with a known cost passed"}


def test_marks_are_counted_beside_the_outcome() -> None:
    marks = (Mark.AGENT_TIMEOUT, Mark.OVER_BUDGET)
    facts = [TrialFact(task="a", configuration="x", outcome=Outcome.PASSED, marks=marks)] * 2
    facts.append(TrialFact(task="a", configuration="x", outcome=Outcome.FAILED, marks=(Mark.AGENT_TIMEOUT,)))
    assert only(facts).counts.marks == {"agent_timeout": 3, "over_budget": 2}
    assert only(facts).valid.value == pytest.approx(2 / 3)


def test_configurations_stand_in_the_order_asked_for() -> None:
    facts = trials("a", "P", "z") + trials("a", "F", "m") + trials("a", "F", "b")
    assert [each.label for each in report(facts, order=("z", "gone")).configurations] == ["z", "b", "m"]


def test_matrix_counts_each_test_by_configuration() -> None:
    def fact(configuration: str, **statuses: Status) -> TrialFact:
        tests = tuple(TestResult(name=name, status=status) for name, status in statuses.items())
        return TrialFact(task="a", configuration=configuration, outcome=Outcome.FAILED, tests=tests)

    found = report(
        [
            fact("x", one=Status.PASSED, two=Status.FAILED),
            fact("x", one=Status.PASSED, two=Status.SKIPPED),
            fact("y", two=Status.ERROR),
        ]
    )
    one, two = found.tests
    assert (one.task, one.test, list(one.cells)) == ("a", "one", ["x"])
    assert (one.cells["x"].passed, one.cells["x"].run) == (2, 2)
    assert (two.cells["x"].failed, two.cells["x"].skipped, two.cells["x"].run) == (1, 1, 1)
    assert two.cells["y"].error == 1


@pytest.mark.parametrize(
    ("facts", "leaderboard", "valid", "coverage"),
    [
        ([], None, None, None),
        (trials("a", "..") + trials("b", ".."), None, None, 0.0),
        (trials("a", "CC") + trials("b", "CC"), 0.0, None, 0.0),
        (trials("a", "SS") + trials("b", "LL"), 0.0, None, 0.0),
        (trials("a", "AA") + trials("b", "AA"), 0.0, 0.0, 1.0),
        (trials("a", "P"), 1.0, 1.0, 1.0),
        (trials("a", "PPP") + trials("b", "PPP"), 1.0, 1.0, 1.0),
        (trials("a", "FFF") + trials("b", "FFF"), 0.0, 0.0, 1.0),
    ],
)
def test_degenerate_jobs_have_a_report(
    facts: list[TrialFact], leaderboard: float | None, valid: float | None, coverage: float | None
) -> None:
    found = report(facts)
    assert len(found.configurations) == bool(facts)
    for each in found.configurations:
        assert (each.leaderboard.value, each.valid.value, each.coverage) == (leaderboard, valid, coverage)
        assert ("value" in each.valid.unavailable) == (valid is None)
        assert ("coverage" in each.unavailable) == (coverage is None)
    assert_sound(found)


outcomes = st.sampled_from("PFSLA?C.")
jobs = st.lists(
    st.builds(trials, st.sampled_from("abcdefgh"), st.text(outcomes, min_size=1, max_size=6), st.sampled_from("xy")),
    min_size=1,
    max_size=12,
).map(lambda groups: [fact for group in groups for fact in group])


def assert_sound(found: JobReport) -> None:
    """Holds for every report there can be."""
    content = json.loads(found.model_dump_json())
    assert JobReport.model_validate(content) == found
    json.dumps(content, allow_nan=False)
    assert_explained(content)
    for each in found.configurations:
        counts = each.counts
        assert counts.passed + counts.failed + counts.error + counts.cancelled == counts.ended <= counts.planned
        assert each.coverage is None or 0.0 <= each.coverage <= 1.0
        if each.valid.value is not None:
            assert each.leaderboard.value is not None
            assert 0.0 <= each.leaderboard.value <= each.valid.value + 1e-12 <= 1.0 + 1e-12
        for score in (each.leaderboard, each.valid):
            known = [rate for rate in score.pass_rates if rate.pass_at_k is not None]
            for few, many in pairwise(known):
                assert (few.pass_at_k or 0) <= (many.pass_at_k or 0) + 1e-12
                assert (few.pass_hat_k or 0) >= (many.pass_hat_k or 0) - 1e-12


def assert_explained(content: object) -> None:
    """Wherever there is an ``unavailable``, it tells exactly which fields are missing."""
    if isinstance(content, list):
        for entry in content:
            assert_explained(entry)
    if isinstance(content, dict):
        reasons = content.get("unavailable")
        if isinstance(reasons, dict):
            for name in reasons:
                assert content[name] is None
        for entry in content.values():
            assert_explained(entry)


@settings(max_examples=25)
@given(jobs, st.randoms(use_true_random=False))
def test_every_report_is_sound_and_independent_of_order(facts: list[TrialFact], rng: random.Random) -> None:
    renumbered = [
        TrialFact(
            task=fact.task,
            configuration=fact.configuration,
            attempt=index,
            outcome=fact.outcome,
            cause=fact.cause,
            reward=fact.reward,
        )
        for index, fact in enumerate(facts)
    ]
    shuffled = renumbered[:]
    rng.shuffle(shuffled)
    found = report(renumbered)
    assert_sound(found)
    assert report(shuffled) == found


def test_the_seed_decides_the_bootstrap() -> None:
    facts = [fact for index in range(1, 15) for fact in trials(f"t{index}", "P" * index + "F" * 30)]
    assert report(facts, seed=1) == report(facts, seed=1)
    assert any(report(facts, seed=1) != report(facts, seed=seed) for seed in range(2, 8))


def test_rules_of_the_leaderboard_come_with_the_spec() -> None:
    spec = JobSpec(tasks=(TaskRef(name="a", digest="d"),), agents=(AgentSpec(name="oracle"),), attempts=5)
    kept = report(trials("a", "PPPPP"), spec=spec).rules
    assert kept is not None
    assert kept.kept
    broken = report(trials("a", "PPPPC"), spec=spec).rules
    assert broken is not None
    assert [rule.rule for rule in broken.broken] == ["at least 5 trials of every task"]
    assert report(trials("a", "P")).rules is None


def big_job(tasks: int, attempts: int, configurations: int) -> list[TrialFact]:
    rng = random.Random(1)
    return [
        fact
        for configuration in range(configurations)
        for task in range(tasks)
        for fact in trials(f"t{task}", "".join(rng.choices("PFS", (6, 4, 0.3), k=attempts)), f"c{configuration}")
    ]


@pytest.mark.parametrize(
    ("shape", "steps"), [((100, 10, 3), 1_000_000), ((19, 10, 3), 15_000_000), ((1000, 100, 1), 15_000_000)]
)
def test_a_report_is_quick(shape: tuple[int, int, int], steps: int) -> None:
    """Twice the steps that it takes, of which ten million are less than a second on any machine of today."""
    facts = big_job(*shape)
    with counted_work() as work:
        report(facts)
    assert work.steps < steps
