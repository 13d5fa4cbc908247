"""How a job becomes trials, and how its numbers are derived from them."""

from __future__ import annotations

from seatrial.domain.job import AgentSpec, JobCounts, JobSpec, JobStatus, RetryPolicy, plan
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause


def spec(attempts: int = 2) -> JobSpec:
    tasks = tuple(TaskRef(name=name, digest=f"sha256:{name}") for name in ("a", "b"))
    agents = (AgentSpec(name="oracle"), AgentSpec(name="terminus-2", model="openai/x"))
    return JobSpec(tasks=tasks, agents=agents, attempts=attempts)


def test_every_combination_once_and_first_attempts_first() -> None:
    trials = list(plan(spec()))
    assert len(trials) == 2 * 2 * 2
    assert [trial.attempt for trial in trials] == [1] * 4 + [2] * 4
    assert len({(trial.task.name, trial.agent_index, trial.attempt) for trial in trials}) == 8


def test_faults_are_tried_again_and_agent_failures_are_not() -> None:
    policy = RetryPolicy(max_attempts=2)
    assert policy.allows(Cause.SANDBOX, tries_made=1)
    assert not policy.allows(Cause.SANDBOX, tries_made=2)
    assert not policy.allows(Cause.AGENT, tries_made=1)
    assert not policy.allows(Cause.VERIFIER, tries_made=1)


def test_each_try_waits_longer() -> None:
    policy = RetryPolicy(backoff_sec=5)
    assert [policy.delay(made) for made in (1, 2, 3)] == [5, 10, 20]


def test_a_jobs_status_is_derived() -> None:
    assert JobCounts(queued=3).status is JobStatus.PENDING
    assert JobCounts(queued=2, running=1).status is JobStatus.RUNNING
    assert JobCounts(queued=2, passed=1).status is JobStatus.RUNNING
    assert JobCounts(passed=1, error=1, cancelled=1).status is JobStatus.COMPLETED
    assert JobCounts(cancelled=2).status is JobStatus.CANCELLED
