"""The leaderboard's rules: each one broken alone, beside a job that keeps them all."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.model_calls.replay import Replay
from seatrial.domain.reports.fact import Counts
from seatrial.domain.reports.rules import TERMINAL_BENCH, PlanChanges, check_rules
from seatrial.domain.task import TaskRef


def spec(options: dict[str, Any] | None = None, **changes: Any) -> JobSpec:
    agents = (AgentSpec(name="terminus-2", model="m", options=options or {}),)
    return JobSpec(**{"tasks": (TaskRef(name="a", digest="d"),), "agents": agents, "attempts": 5, **changes})


def test_a_job_that_keeps_the_rules() -> None:
    check = check_rules(spec({"temperature": 0.7, "override_timeout_sec": None}))
    assert check.kept
    assert (check.rules, check.version) == (TERMINAL_BENCH.name, TERMINAL_BENCH.version)


@pytest.mark.parametrize(
    ("job", "rule", "found"),
    [
        (spec(timeout_multiplier=2.0), "timeout multiplier 1.0", "the job used 2"),
        (spec(trial_limit_sec=600), "no timeout overrides", "trial_limit_sec=600"),
        (spec({"override_timeout_sec": 30}), "no timeout overrides", "override_timeout_sec=30"),
        (spec({"override_cpus": 8}), "no resource overrides", "override_cpus=8"),
        (spec(replay=Replay(trial=7)), "every trial asks its model", "the answers are those of trial 7"),
        (spec(attempts=4), "at least 5 trials of every task", "4 planned"),
    ],
)
def test_each_rule_can_be_broken_alone(job: JobSpec, rule: str, found: str) -> None:
    (broken,) = check_rules(job).broken
    assert (broken.rule, broken.found) == (rule, found)


def test_trials_without_limits_break_the_resource_rule() -> None:
    limited = Counts(planned=5, ended=5, passed=5, valid=5)
    unlimited = limited.model_copy(update={"marks": {"limits_not_enforced": 2}})
    assert check_rules(spec(), [{"a": limited}]).kept
    (broken,) = check_rules(spec(), [{"a": limited}, {"a": unlimited}]).broken
    assert broken.found == "2 trials ran without the task's limits"


def test_what_still_runs_counts_and_what_was_cancelled_does_not() -> None:
    assert check_rules(spec(), [{"a": Counts(planned=5, ended=1, passed=1, valid=1)}]).kept
    (broken,) = check_rules(spec(), [{"a": Counts(planned=5, ended=5, passed=4, cancelled=1, valid=4)}]).broken
    assert broken.found == "1 tasks have fewer, 'a' among them"


def test_reports_say_that_a_job_is_replayed() -> None:
    (said,) = PlanChanges.of(spec(replay=Replay(trial=7)), planned=5, added=0).sentences
    assert said.startswith("The job replays the model's answers of trial 7")
    assert PlanChanges.of(spec(), planned=5, added=0).sentences == ()
