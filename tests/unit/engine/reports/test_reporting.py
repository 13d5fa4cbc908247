"""From rows to facts: names that tell configurations and tasks apart, and which result counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.result import Result, TestResult, Usage
from seatrial.domain.result import TestStatus as Status
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Mark, Outcome, Trial, TrialState
from seatrial.engine.reports.comparing import sides_of_job
from seatrial.engine.reports.reporting import (
    configuration_labels,
    facts_of,
    report_job,
    task_names,
)
from seatrial.ports.store import TrialFilter, TrialRow
from seatrial.testing.memory_store import MemoryStore
from tests.summaries import reported, summarised

NOW = datetime(2026, 1, 2, tzinfo=UTC)
TASK = TaskRef(name="chess", digest="sha256:" + "a" * 64)
OTHER = TaskRef(name="regex", digest="sha256:" + "b" * 64)
TWO = (AgentSpec(name="terminus-2", model="m"), AgentSpec(name="oracle"))


def row(
    outcome: Outcome | None, *, task: TaskRef = TASK, agent_index: int = 0, attempt: int = 1, cause: Cause | None = None
) -> TrialRow:
    agent = TWO[agent_index]
    state = TrialState.RUNNING if outcome is None else TrialState.ENDED
    trial = Trial(
        id=attempt,
        job_id=1,
        task=task,
        agent_index=agent_index,
        agent=agent.name,
        model=agent.model,
        attempt=attempt,
        state=state,
        outcome=outcome,
        cause=cause,
        created_at=NOW,
    )
    # A trial that runs again has the result of its earlier attempt.
    result = Result(
        outcome=outcome or Outcome.ERROR,
        cause=cause,
        rewards={"reward": 1.0} if outcome is Outcome.PASSED else {},
        marks=(Mark.AGENT_TIMEOUT,),
        seconds=4.5,
        usage=Usage(input_tokens=100, cached_tokens=40, output_tokens=7, cost_usd=0.25),
        tests=(TestResult(name="test_it", status=Status.PASSED),),
    )
    return TrialRow(trial=trial, result=result)


def job(*agents: AgentSpec) -> Job:
    return Job(id=1, spec=JobSpec(tasks=(TASK, OTHER), agents=agents or TWO, attempts=2), created_at=NOW)


def test_a_row_becomes_a_fact() -> None:
    (fact,) = facts_of(summarised([row(Outcome.PASSED, attempt=2)]), job().spec)
    assert (fact.task, fact.configuration, fact.attempt, fact.digest) == ("chess", "terminus-2 / m", 2, TASK.digest)
    assert (fact.outcome, fact.cause, fact.reward, fact.marks) == (Outcome.PASSED, None, 1.0, (Mark.AGENT_TIMEOUT,))
    assert (fact.input_tokens, fact.cached_tokens, fact.output_tokens) == (100, 40, 7)
    assert (fact.seconds, fact.cost_usd, fact.tests) == (4.5, 0.25, ())


def test_tests_come_along_when_asked_for() -> None:
    assert [line.test for line in reported([row(Outcome.PASSED)], job(), with_tests=True).tests] == ["test_it"]


def test_the_result_of_an_earlier_attempt_does_not_count() -> None:
    (fact,) = facts_of(summarised([row(None)]), job().spec)
    assert (fact.outcome, fact.reward, fact.seconds, fact.marks) == (None, None, None, ())
    assert (fact.cost_usd, fact.input_tokens) == (0.25, 100), "what it cost counts all the same"


def test_namesakes_are_told_apart_by_what_differs() -> None:
    alike = [AgentSpec(name="t", model="m", options={"temperature": heat, "top_p": 1}) for heat in (0.2, 0.9)]
    assert configuration_labels([*alike, AgentSpec(name="oracle")]) == (
        "t / m (temperature=0.2)",
        "t / m (temperature=0.9)",
        "oracle",
    )
    by_env = [AgentSpec(name="t", env={"A": value}) for value in "12"]
    assert configuration_labels(by_env) == ("t #1", "t #2")


def test_tasks_of_one_name_are_told_apart_by_content() -> None:
    twin = TaskRef(name="chess", digest="sha256:" + "c" * 64)
    assert task_names([TASK, OTHER, twin]) == {
        TASK.digest: "chess@aaaaaaaa",
        twin.digest: "chess@cccccccc",
        OTHER.digest: "regex",
    }


@pytest.fixture
async def stored() -> tuple[MemoryStore, Job]:
    """A job with two tasks, two agents and two attempts; the last trial has not been claimed."""
    store = MemoryStore()
    spec = job().spec
    made = await store.jobs.create(spec, list(plan(spec)), NOW)
    for trial in await store.trials.claim("w", timedelta(seconds=60), 7, NOW):
        fault = trial.agent == "terminus-2" and trial.task == OTHER
        passed = trial.agent == "oracle" or trial.attempt == 1
        outcome = Outcome.ERROR if fault else Outcome.PASSED if passed else Outcome.FAILED
        result = Result(
            outcome=outcome,
            cause=Cause.SANDBOX if fault else None,
            rewards={} if fault else {"reward": float(passed)},
            tests=(TestResult(name="test_it", status=Status.PASSED),),
        )
        await store.trials.finish(trial.id, trial.try_number, result, NOW)
    return store, made


async def test_report_of_a_job_has_the_best_configuration_first(stored: tuple[MemoryStore, Job]) -> None:
    store, made = stored
    found = await report_job(store.trials, made, with_tests=True)
    assert found == reported([row async for row in store.trials.each(TrialFilter())], made, with_tests=True)
    second, first = found.configurations
    assert (first.label, second.label) == ("terminus-2 / m", "oracle")
    assert (first.leaderboard.value, first.valid.value, first.coverage) == (0.25, 0.5, 0.5)
    assert (second.leaderboard.value, second.counts.ended, second.counts.planned) == (1.0, 3, 4)
    assert [rule.rule for rule in found.rules.broken] if found.rules else [] == ["at least 5 trials of every task"]
    assert [(line.task, line.test) for line in found.tests] == [("chess", "test_it"), ("regex", "test_it")]


async def test_sides_of_a_job_count_as_its_report_does(stored: tuple[MemoryStore, Job]) -> None:
    store, made = stored
    sides = await sides_of_job(store, made)
    found = {each.label: each for each in (await report_job(store.trials, made)).configurations}
    for side in sides:
        configuration = found[side.configuration]
        for task in configuration.tasks:
            assert side.tasks[task.task] == task.counts.model_copy(update={"marks": {}})
            assert side.digests[task.task] == task.digest


async def test_long_jobs_are_read_page_by_page() -> None:
    spec = JobSpec(tasks=(TASK,), agents=TWO[:1], attempts=1000)
    store = MemoryStore()
    made, _ = [await store.jobs.create(spec, [*plan(spec), *plan(spec)][:1001], NOW) for _ in range(2)]
    (side,) = await sides_of_job(store, made)
    assert side.tasks["chess"].planned == 1001
