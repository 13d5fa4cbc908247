"""The leaderboard: which job stands for a configuration, who is eligible and why not, and that nothing is mixed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.model_calls.replay import Replay
from seatrial.domain.reports.leaderboard import Board, Entry
from seatrial.domain.result import Result, Usage
from seatrial.domain.task import Dataset, TaskRef
from seatrial.domain.trial import Cause, Mark, Outcome
from seatrial.engine.recent import EndedJobs
from seatrial.engine.reports.leaderboard import LeaderboardFilter, Leaderboards
from seatrial.engine.reports.listing import JobListing
from seatrial.engine.reports.reporting import report_job
from seatrial.engine.reports.trend import trend_of
from seatrial.testing.memory_store import MemoryStore

NOW = datetime(2026, 5, 1, tzinfo=UTC)
REFS = tuple(TaskRef(name=name, digest=f"sha256:{number:064x}") for number, name in enumerate("abc"))
WHOLE = Dataset(name="d", version="1", tasks=REFS)
_RESULTS = {
    "P": Result(outcome=Outcome.PASSED, rewards={"reward": 1.0}, usage=Usage(cost_usd=0.25)),
    "F": Result(outcome=Outcome.FAILED, rewards={"reward": 0.0}, usage=Usage(cost_usd=0.25)),
    "S": Result(outcome=Outcome.ERROR, cause=Cause.SANDBOX),
    "U": Result(outcome=Outcome.PASSED, rewards={"reward": 1.0}, marks=(Mark.LIMITS_NOT_ENFORCED,)),
}


async def run(
    store: MemoryStore,
    letters: str,
    *,
    agents: tuple[AgentSpec, ...] = (AgentSpec(name="x"),),
    tasks: tuple[TaskRef, ...] = REFS,
    at: datetime = NOW,
    **more: Any,
) -> Job:
    """A job whose trials end in these ways, in the order of the plan; those beyond the letters wait."""
    given: dict[str, Any] = {"dataset": "d@1", "attempts": 5, **more}
    spec = JobSpec(tasks=tasks, agents=agents, **given)
    job = await store.jobs.create(spec, tuple(plan(spec)), at)
    claimed = await store.trials.claim("w", timedelta(minutes=1), len(letters), at, job_id=job.id)
    for trial, letter in zip(claimed, letters, strict=True):
        await store.trials.finish(trial.id, trial.try_number, _RESULTS[letter], at)
    return await store.jobs.get(job.id)


async def boards(store: MemoryStore, **chosen: Any) -> tuple[Board, ...]:
    ended = EndedJobs()
    found = Leaderboards(store, JobListing(store.jobs, ended), ended)
    first = await found.leaderboard(LeaderboardFilter(**chosen))
    assert await found.leaderboard(LeaderboardFilter(**chosen)) == first, "what is remembered is the same"
    return first.boards


async def only(store: MemoryStore, **chosen: Any) -> Entry:
    [board] = await boards(store, **chosen)
    [found] = board.entries
    return found


@pytest.fixture
async def store() -> MemoryStore:
    store = MemoryStore()
    await store.tasks.save_dataset(WHOLE, NOW)
    return store


async def test_the_newest_eligible_job_stands_and_nothing_is_pooled(store: MemoryStore) -> None:
    first = await run(store, "P" * 9 + "F" * 6)
    second = await run(store, "P" * 3 + "F" * 12)
    broken = await run(store, "P" * 15, timeout_multiplier=1.0, attempts=5, name="whole")
    running = await run(store, "P" * 14)
    found = await only(store)
    assert found.shown.job == broken.id and found.shown.score.value == 1.0
    assert [each.job for each in found.others] == [running.id, second.id, first.id]
    assert found.chosen == "the newest of 3 eligible jobs, 4 in all"
    assert found.others[0].why_not == ("every trial ended: 14 of 15 have",)
    report = await report_job(store.trials, broken)
    assert found.shown.score == report.configurations[0].headline
    assert found.shown.cost_per_trial == report.configurations[0].spending.cost_per_trial == 0.25


async def test_without_an_eligible_job_the_newest_with_a_score_stands(store: MemoryStore) -> None:
    scored = await run(store, "PPF", attempts=1)
    await run(store, "SSS", attempts=1)
    found = await only(store)
    assert (found.shown.job, found.rank) == (scored.id, None)
    assert found.chosen == "the newest with a score of 2 jobs, none eligible"
    assert found.shown.why_not == ("at least 5 trials of every task: 3 tasks have fewer, 'a' among them",)
    [errors] = found.others
    assert "a score: no trial has a valid result" in errors.why_not and errors.score.value is None


@pytest.mark.parametrize(
    ("letters", "more", "why"),
    [
        ("P" * 15, {"timeout_multiplier": 2.0}, "timeout multiplier 1.0: the job used 2"),
        ("P" * 15, {"trial_limit_sec": 60.0}, "no timeout overrides: trial_limit_sec=60"),
        ("P" * 14 + "U", {}, "no resource overrides: 1 trials ran without the task's limits"),
        ("P" * 15, {"dataset": None}, "a whole dataset: the job named tasks"),
        ("P" * 10, {"tasks": REFS[:2]}, "a whole dataset: 2 tasks instead of its 3, or other content"),
        ("P" * 15, {"dataset": "gone@1"}, "a whole dataset: gone@1 is not registered any more"),
        ("P" * 3, {"attempts": 1}, "at least 5 trials of every task: 3 tasks have fewer, 'a' among them"),
    ],
)
async def test_who_is_not_eligible_is_told_why(
    store: MemoryStore, letters: str, more: dict[str, Any], why: str
) -> None:
    await run(store, letters, **more)
    found = await only(store)
    assert not found.shown.eligible and found.rank is None and found.shown.why_not == (why,)


async def test_rules_are_checked_for_each_configuration_alone(store: MemoryStore) -> None:
    agents = (AgentSpec(name="plain"), AgentSpec(name="greedy", options={"override_cpus": 8}))
    await run(store, "PF" * 15, agents=agents)
    [board] = await boards(store)
    assert [(each.agent, each.rank) for each in board.entries] == [("plain", 1), ("greedy", None)]
    assert board.entries[1].shown.why_not == ("no resource overrides: override_cpus=8",)


async def test_equal_labels_with_other_options_or_conditions_are_never_one_line(store: MemoryStore) -> None:
    for options in ({"temperature": 0}, {"temperature": 1}):
        await run(store, "P" * 15, agents=(AgentSpec(name="x", model="m", options=options),))
    await run(store, "F" * 15, agents=(AgentSpec(name="x", model="m", options={"temperature": 1}),), instruction="hm")
    [board] = await boards(store)
    assert sorted(each.label for each in board.entries) == [
        "x / m (temperature=0)",
        "x / m (temperature=1)",
        "x / m (temperature=1) [own instruction]",
    ]
    assert all(not each.others for each in board.entries)
    assert [each.rank for each in board.entries] == [1, 1, 3], "equal scores share a rank"


async def test_other_tasks_and_other_datasets_are_other_boards(store: MemoryStore) -> None:
    await run(store, "P" * 15)
    await run(store, "F" * 5, tasks=REFS[:1])
    await run(store, "F" * 5, tasks=REFS[1:2])
    await run(store, "P" * 15, dataset=None)
    found = await boards(store)
    assert [board.label for board in found] == ["d@1, 1 task", "d@1, 1 task (2)", "d@1, 3 tasks", "a, b …, 3 tasks"]
    assert [len(board.entries) for board in found] == [1, 1, 1, 1]


async def test_a_name_and_its_version_are_the_same_dataset(store: MemoryStore) -> None:
    await run(store, "P" * 15, dataset="d")
    await run(store, "P" * 15)
    found = await only(store, dataset="d")
    assert len(found.others) == 1 and found.shown.eligible


async def test_added_removed_and_cancelled_attempts_are_said(store: MemoryStore) -> None:
    job = await run(store, "P" * 14)
    await store.jobs.cancel(job.id, NOW)
    planned = next(iter(store.records.of_job(job.id)))
    await store.jobs.add_attempts([planned.id], NOW)
    [added] = await store.trials.claim("w", timedelta(minutes=1), 1, NOW, job_id=job.id)
    await store.trials.finish(added.id, added.try_number, _RESULTS["F"], NOW)
    found = await only(store)
    assert found.shown.notices == (
        "1 attempt was added after the plan, outside of every score.",
        "1 planned trial cancelled.",
    )
    assert found.shown.score.value == 1.0 and not found.shown.eligible


async def test_filters(store: MemoryStore) -> None:
    agents = (AgentSpec(name="x", model="m"), AgentSpec(name="y", model="m"))
    await run(store, "PF" * 15, agents=agents)
    await run(store, "P" * 15, at=NOW + timedelta(days=2))
    assert [each.agent for each in (await boards(store, agent="y"))[0].entries] == ["y"]
    assert sorted(each.agent for each in (await boards(store, model="m"))[0].entries) == ["x", "y"]
    assert await boards(store, dataset="other") == ()
    newer = await only(store, since=datetime(2026, 5, 2))
    assert (newer.agent, newer.model) == ("x", None)


async def test_more_jobs_than_are_looked_at_are_said(store: MemoryStore) -> None:
    for _ in range(5):
        await run(store, "")
    ended = EndedJobs()
    found = await Leaderboards(store, JobListing(store.jobs, ended), ended, most_jobs=2).leaderboard(
        LeaderboardFilter()
    )
    assert (found.jobs, found.older) == (2, 3)


async def test_a_trend_has_jobs_with_the_same_tasks_and_names_configurations_alike(store: MemoryStore) -> None:
    first = await run(store, "P" * 15)
    await run(store, "F" * 5, tasks=REFS[:1])
    last = await run(store, "F" * 15, agents=(AgentSpec(name="x", options={"temperature": 1}),))
    found = await trend_of(store.jobs, JobListing(store.jobs), first)
    assert [(point.job, point.score.label, point.score.value) for point in found.points] == [
        (first.id, "x", 1.0),
        (last.id, "x (temperature=1)", 0.0),
    ]
    assert found.other_tasks == 1
    alone = await trend_of(store.jobs, JobListing(store.jobs), await run(store, "", dataset=None))
    assert alone.points == () and alone.missing


async def test_replayed_jobs_are_not_ranked() -> None:
    """Their answers are those of an earlier job, so they would count it twice."""
    store = MemoryStore()
    await run(store, "PPFFF" * 3, at=NOW)
    ranked = await boards(store)
    await run(store, "P" * 15, at=NOW + timedelta(days=1), replay=Replay(trial=1))
    assert await boards(store) == ranked
