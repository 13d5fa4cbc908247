"""When a comparison of two configurations is settled: the plan, the test, its error rate and its saving."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.reports.rules import PlanChanges, check_rules
from seatrial.domain.reports.settled import RunSoFar, settled
from seatrial.domain.reports.settling import Course, Finding, Pair, UntilSettled, course, drawn_order, looks
from seatrial.domain.statistics.sequential_test import REPLAYS, SequentialSignFlip, evidence_of_smallness
from seatrial.domain.task import TaskRef
from tests.simulated_pairs import MIXES, NULLS, shift_for, simulate

RULE = UntilSettled(seed=1)
TASKS = [f"task-{number}" for number in range(12)]
Outcomes = dict[tuple[str, int, int], bool | None]


def ended(attempts: int, a: bool | None, b: bool | None, tasks: list[str] = TASKS) -> Outcomes:
    cells = product(tasks, range(1, attempts + 1))
    return {key: value for task, k in cells for key, value in (((task, 0, k), a), ((task, 1, k), b))}


def run_out(rule: UntilSettled, tasks: list[str], attempts: int, outcomes: Outcomes) -> tuple[Course, Outcomes]:
    """Runs what is wanted until nothing is, as the engine does."""
    there: Outcomes = {}
    while True:
        found = course(rule, tasks, attempts, there)
        if found.finding is not Finding.OPEN:
            return found, there
        assert found.wanted
        there |= {(task, side, k): outcomes[task, side, k] for task, k in found.wanted for side in (0, 1)}


def test_a_clear_difference_is_settled_early() -> None:
    found, ran = run_out(RULE, TASKS, 5, ended(5, True, False))
    assert (found.finding, found.difference) == (Finding.A_BETTER, 1.0)
    assert len(ran) <= 2 * 12 * 2
    assert run_out(RULE, TASKS, 5, ended(5, False, True))[0].finding is Finding.B_BETTER


def test_two_that_always_do_the_same_stop_after_three_attempts_unsettled() -> None:
    """Twelve tasks cannot show a margin of three points. Tasks on which nothing ever differs get no more attempts."""
    found, ran = run_out(RULE, TASKS, 5, ended(5, True, True))
    assert (found.finding, len(ran)) == (Finding.NOT_SETTLED, 2 * 12 * 3)


def test_many_tasks_can_show_that_the_difference_is_within_the_margin() -> None:
    many = [f"task-{number}" for number in range(400)]
    found, ran = run_out(RULE, many, 5, ended(5, True, True, many))
    assert found.finding is Finding.WITHIN_MARGIN
    assert len(ran) < 2 * 400 * 2
    wide = UntilSettled(seed=1, margin=30)
    assert run_out(wide, many[:60], 2, ended(2, False, False, many[:60]))[0].finding is Finding.WITHIN_MARGIN


def test_errors_say_nothing_and_do_not_block() -> None:
    found, _ = run_out(RULE, TASKS, 3, ended(3, None, True))
    assert (found.finding, found.difference) == (Finding.NOT_SETTLED, None)
    some = ended(5, True, False) | ended(5, None, False, TASKS[:2])
    assert run_out(RULE, TASKS, 5, some)[0].finding is Finding.A_BETTER


def test_quick_trials_do_not_decide() -> None:
    """A look waits for all pairs before it, however many later ones have ended."""
    order = drawn_order(RULE, TASKS)
    outcomes = ended(5, True, False)
    del outcomes[order[0], 1, 1]
    found = course(RULE, TASKS, 5, outcomes)
    assert (found.finding, found.looks_made, found.wanted[0]) == (Finding.OPEN, 0, Pair(order[0], 1))


def test_later_outcomes_do_not_change_an_earlier_look() -> None:
    rng = random.Random(3)
    outcomes = {key: rng.random() < 0.5 + 0.2 * (key[1] == 0) for key in ended(4, True, True)}
    found, ran = run_out(UntilSettled(seed=5, alpha=0.3), TASKS, 4, outcomes)
    assert course(UntilSettled(seed=5, alpha=0.3), TASKS, 4, {**outcomes, **ran}) == found


def test_the_next_pairs_start_when_most_before_the_look_have_ended() -> None:
    first = course(RULE, TASKS, 5, {})
    assert len(first.wanted) == looks(12, 5)[0] == 6
    most = {(task, side, 1): True for task, _ in first.wanted[:5] for side in (0, 1)}
    assert len(course(RULE, TASKS, 5, most).wanted) == 1 + 6


@given(st.integers(1, 300), st.integers(1, 1000))
def test_looks_are_few_and_end_with_the_plan(tasks: int, attempts: int) -> None:
    points = looks(tasks, attempts)
    assert points[-1] == tasks * attempts
    assert list(points) == sorted(set(points))
    assert len(points) <= 40


@settings(max_examples=30)
@given(st.lists(st.integers(-60, 60), min_size=1, max_size=20), st.integers(0, 2**32))
def test_replays_are_summed_as_one_by_one(differences: list[int], seed: int) -> None:
    rng = random.Random(seed)
    flips = [rng.getrandbits(REPLAYS) for _ in differences]
    sums = SequentialSignFlip(flips)._sums(differences)
    for replay in (0, 1, REPLAYS // 2, REPLAYS - 1):
        place = REPLAYS - 1 - replay
        signed = [-each if flip >> place & 1 else each for each, flip in zip(differences, flips, strict=True)]
        assert sums[replay] == abs(sum(signed))
    assert sums[-1] == abs(sum(differences))


@pytest.mark.parametrize("seed", [1, 2])
def test_of_all_ways_to_call_a_side_a_at_most_alpha_ever_name_a_winner(seed: int) -> None:
    """The exact guarantee, by enumeration: the sides of each task are swapped in every possible way."""
    rng, tasks, alpha = random.Random(seed), TASKS[:6], 0.3
    outcomes = {key: rng.random() < 0.5 + 0.45 * (key[1] == 0) for key in ended(2, True, True, tasks)}
    named = 0
    for swaps in product((0, 1), repeat=len(tasks)):
        swapped = {(task, side ^ swaps[tasks.index(task)], k): value for (task, side, k), value in outcomes.items()}
        finding = course(UntilSettled(seed=seed, alpha=alpha), tasks, 2, swapped).finding
        named += finding in (Finding.A_BETTER, Finding.B_BETTER)
    assert named / 2 ** len(tasks) <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / REPLAYS)
    assert named  # it does name winners


def test_capital_against_a_margin_is_fair() -> None:
    """Expected capital at most 1 if the mean is the margin, by enumeration of a lopsided distribution."""
    margin, tasks = 0.1, 10
    expected = math.fsum(
        math.comb(tasks, hits)
        * margin**hits
        * (1 - margin) ** (tasks - hits)
        * evidence_of_smallness([1.0] * hits + [0.0] * (tasks - hits), margin)
        for hits in range(tasks + 1)
    )
    assert expected <= 1.0 + 1e-9
    assert evidence_of_smallness([0.0] * 200, margin) > 1000


def test_error_rate_and_saving_by_simulation() -> None:
    """A small simulation; ``benchmarks/settling.py`` has the whole one."""
    null = [simulate(NULLS["mostly hard"], 0.0, 30, 3, seed, alpha=0.2) for seed in range(60)]
    wrong = sum(run.finding in (Finding.A_BETTER, Finding.B_BETTER) for run in null)
    assert wrong / 60 <= 0.2 + 3 * math.sqrt(0.2 * 0.8 / 60)
    assert wrong > 0
    mix = MIXES["mostly very easy or very hard"]
    shift = shift_for(mix, 0.15, sample=1000)
    apart = [simulate(mix, shift, 89, 5, seed) for seed in range(12)]
    assert sum(run.finding is Finding.A_BETTER for run in apart) >= 11
    assert sum(run.trials for run in apart) / 12 <= 0.6 * 890


def test_the_plan_follows_the_drawn_order_and_seeds_differ() -> None:
    refs = tuple(TaskRef(name=name, digest=name) for name in TASKS)
    agents = (AgentSpec(name="oracle"), AgentSpec(name="nop"))
    spec = JobSpec(tasks=refs, agents=agents, attempts=2, until_settled=RULE)
    order = [trial.task.digest for trial in plan(spec)][:24:2]
    assert tuple(order) == drawn_order(RULE, TASKS) == drawn_order(RULE, TASKS[::-1])
    assert drawn_order(UntilSettled(seed=2), TASKS) != tuple(order)
    assert [trial.task.name for trial in plan(spec.model_copy(update={"until_settled": None}))][:24:2] == TASKS


def test_a_job_that_may_stop_or_stopped_early_is_not_for_the_leaderboard() -> None:
    refs = tuple(TaskRef(name=name, digest=name) for name in TASKS)
    spec = JobSpec(tasks=refs, agents=(AgentSpec(name="a"), AgentSpec(name="b")), attempts=5, until_settled=RULE)
    assert [broken.rule for broken in check_rules(spec).broken] == ["at least 5 trials of every task"]
    assert check_rules(spec.model_copy(update={"until_settled": None})).kept
    changes = PlanChanges.of(spec, planned=100, added=0)
    assert (changes.removed, changes.not_needed) == (0, 20)
    assert "Stopped early: 20 planned trials were not needed" in changes.sentences[0]


@pytest.mark.parametrize(
    ("finding", "left", "better", "says"),
    [
        (Finding.A_BETTER, 3, "A", "Settled: A is better than B (12.5 points at the last look)."),
        (Finding.B_BETTER, 0, "B", "Settled: B is better than A (12.5 points at the last look)."),
        (Finding.WITHIN_MARGIN, 0, None, "Settled: A and B differ by less than 3 points."),
        (Finding.OPEN, 3, None, "Not settled yet: 2 of 8 looks made."),
        (Finding.OPEN, 0, None, "Not settled: after all trials it is not known whether A or B is better."),
    ],
)
def test_what_the_report_says(finding: Finding, left: int, better: str | None, says: str) -> None:
    run = RunSoFar(tasks_run=12, tasks=12, trials_run=40, trials_left=left, trials_there=60, trials_planned=120)
    found = settled(RULE, Course(finding=finding, difference=0.125, looks_made=2, looks_planned=8), ("A", "B"), run)
    assert (found.better, found.sentence, found.not_needed, found.saving) == (better, says, 60, 0.5)
    assert "at most 5 % of such jobs name a winner" in found.guarantee
