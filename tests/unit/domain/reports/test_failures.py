"""Failed trials are grouped by what decided them, whatever changes from run to run in their messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.domain.reports.failures import MOST_GROUPS, FailedTest, FailedTrial, group_failures, normalised
from seatrial.domain.trial import Cause, Mark, Outcome


def failed(number: int, *tests: FailedTest, **more: object) -> FailedTrial:
    values = {"task": "t", "configuration": "a", "attempt": 1, "outcome": Outcome.FAILED, **more}
    return FailedTrial(trial_id=number, tests=tests, **values)  # type: ignore[arg-type]


def assertion(number: int) -> FailedTest:
    return FailedTest("test_it.py::test_sum", f"AssertionError: assert {number} == 42 in /tmp/run-{number}/out.txt")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("FileNotFoundError: /tmp/a1/out.txt", "FileNotFoundError: /var/lib/x/y.json"),
        ("assert 17 == 42", "assert 3.5e-7 == 42"),
        ("at 0x7fff12 id 1b4e28ba-2fa1-11d2-883f-0016d3cca427", "at 0xdead00 id 9c858901-8a57-4791-81fe-4c455b099bc9"),
        ("2026-05-01T12:00:00Z commit 9f86d081884c7d65", "2025-01-31 23:59:59 commit 2c26b46b68ffc68f"),
        ("took 12:31:07", "took 01:02:03.5"),
        ("\x1b[31mE   assert False\x1b[0m", "E assert   False"),
    ],
)
def test_what_changes_from_run_to_run_is_taken_out(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


def test_different_errors_stay_different() -> None:
    lines = ["KeyError: 'name'", "KeyError: 'size'", "assert 1 == 2", "decade of facade", "and/or"]
    assert len({normalised(line) for line in lines}) == len(lines)


@given(st.text(max_size=500))
def test_any_line_has_a_normal_form_that_stays(line: str) -> None:
    assert len(normalised(line)) <= 3 * 300
    assert "\n" not in normalised(line)


def test_the_same_tests_and_the_same_error_are_one_group() -> None:
    trials = [failed(number, assertion(number), last_command="bash: make") for number in range(1, 6)]
    trials += [failed(6, assertion(1), FailedTest("test_it.py::test_other"), task="u")]
    trials += [failed(7, assertion(1), marks=(Mark.AGENT_TIMEOUT,)), failed(8, assertion(1), marks=(Mark.PRIVILEGED,))]
    found = group_failures(trials)
    assert [group.trials for group in found.groups] == [(1, 2, 3, 4, 5, 8), (6,), (7,)]
    first, two_tests, late = found.groups
    assert (first.title, first.line) == ("test_sum failed", "AssertionError: assert <n> == <n> in <path>")
    assert (first.commands, first.configurations, first.tasks) == (("bash: make",), {"a": 6}, 1)
    assert first.example.message == assertion(1).message
    assert two_tests.title == "test_sum and 1 more failed" or two_tests.title == "test_other and 1 more failed"
    assert late.title == "test_sum failed; the agent ran out of time"
    assert (found.failed, found.errors, found.not_shown) == (8, 0, 0)


def test_errors_are_grouped_by_cause_and_message() -> None:
    errors = [
        failed(1, outcome=Outcome.ERROR, cause=Cause.LLM, message="RateLimitError: retry in 17 s"),
        failed(2, outcome=Outcome.ERROR, cause=Cause.LLM, message="RateLimitError: retry in 3 s"),
        failed(3, outcome=Outcome.ERROR, cause=Cause.IMAGE, message="RateLimitError: retry in 3 s"),
    ]
    groups = group_failures(errors).groups
    assert [(group.title, group.trials) for group in groups] == [("error: llm", (1, 2)), ("error: image", (3,))]


def test_without_tests_and_errors_the_last_command_decides() -> None:
    trials = [failed(1, last_command="bash: sleep 10"), failed(2, last_command="bash: sleep 99"), failed(3)]
    assert [group.trials for group in group_failures(trials).groups] == [(1, 2), (3,)]
    assert group_failures([]).groups == ()


def test_many_trials_and_many_groups_are_bounded() -> None:
    trials = [failed(number, FailedTest(f"test_{number % 1000}", "x" * 4000)) for number in range(10_000)]
    found = group_failures(trials)
    assert (len(found.groups), found.not_shown) == (MOST_GROUPS, 10_000 - 10 * MOST_GROUPS)
