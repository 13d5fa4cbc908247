"""``seatrial compare``: which sides a command line stands for, and what its JSON holds."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from seatrial.cli.commands.report import comparisons_json, report_json
from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.result import Result
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome
from seatrial.engine.reports.circumstances import compare_circumstances
from seatrial.engine.reports.comparing import ComparisonWish, compare_jobs, look_up, pair_sides
from seatrial.engine.reports.reporting import report_job
from seatrial.errors import InvalidInput, NotFound
from seatrial.testing.memory_store import MemoryStore

NOW = datetime(2026, 1, 2, tzinfo=UTC)
GPT, CLAUDE = (AgentSpec(name="terminus-2", model=model) for model in ("gpt-x", "claude"))
TASKS = tuple(TaskRef(name=f"t{index}", digest=f"sha256:{index:064x}") for index in range(8))


async def run_job(store: MemoryStore, *agents: AgentSpec) -> Job:
    """claude passes everything, gpt-x only the even tasks."""
    spec = JobSpec(tasks=TASKS, agents=agents, attempts=2)
    job = await store.jobs.create(spec, list(plan(spec)), NOW)
    for trial in await store.trials.claim("w", timedelta(seconds=60), 1000, NOW):
        passed = trial.model == "claude" or int(trial.task.name[1:]) % 2 == 0
        outcome = Outcome.PASSED if passed else Outcome.FAILED
        await store.trials.finish(
            trial.id, trial.try_number, Result(outcome=outcome, rewards={"reward": float(passed)}), NOW
        )
    return job


@pytest.fixture
async def store() -> MemoryStore:
    """Job 1: both models. Job 2: claude alone."""
    made = MemoryStore()
    await run_job(made, GPT, CLAUDE)
    await run_job(made, CLAUDE)
    return made


async def labels(store: MemoryStore, *wanted: str) -> list[tuple[str, str]]:
    return [(a.label, b.label) for a, b in pair_sides([await look_up(store, each) for each in wanted])]


async def test_one_job_is_compared_within_itself(store: MemoryStore) -> None:
    assert await labels(store, "1") == [("terminus-2 / gpt-x", "terminus-2 / claude")]


async def test_the_same_configuration_of_two_jobs_is_told_apart_by_the_job(store: MemoryStore) -> None:
    assert await labels(store, "1", "2") == [("terminus-2 / claude (job 1)", "terminus-2 / claude (job 2)")]


async def test_a_configuration_is_named_by_a_part_of_it(store: MemoryStore) -> None:
    assert await labels(store, "1:GPT", "2") == [("terminus-2 / gpt-x", "terminus-2 / claude")]
    assert await labels(store, "1:gpt", "1:claude") == [("terminus-2 / gpt-x", "terminus-2 / claude")]
    assert len(await labels(store, "1:gpt", "2", "1:claude")) == 2


async def test_a_full_name_wins_over_names_that_contain_it() -> None:
    store = MemoryStore()
    await run_job(store, AgentSpec(name="oracle"), AgentSpec(name="oracle-plus"))
    assert [side.configuration for side in await look_up(store, "1:oracle")] == ["oracle"]
    assert len(await look_up(store, "1:orac")) == 2


@pytest.mark.parametrize("wanted", ["x", "", "x:gpt", "-1", "1:opus"])
async def test_what_stands_for_nothing_is_refused(store: MemoryStore, wanted: str) -> None:
    with pytest.raises(InvalidInput):
        await look_up(store, wanted)


async def test_unknown_configurations_are_answered_with_the_known(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="It has: terminus-2 / gpt-x, terminus-2 / claude"):
        await look_up(store, "1:opus")


async def test_an_unknown_job_is_not_found(store: MemoryStore) -> None:
    with pytest.raises(NotFound):
        await look_up(store, "99")


async def test_one_configuration_alone_has_nothing_to_compare_with(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="nothing to compare with"):
        await labels(store, "2")


async def test_json_of_a_comparison_has_the_sentence_and_the_numbers(store: MemoryStore) -> None:
    wish = ComparisonWish(sides=("1",))
    compared, circumstances = await compare_jobs(store, wish), await compare_circumstances(store, wish)
    content = json.loads(json.dumps(comparisons_json(compared, circumstances), allow_nan=False))
    (found,) = content["comparisons"]
    assert found["verdict"].startswith("Too little data to tell")
    assert found["a_minus_b"] == pytest.approx(-0.5)
    assert found["significance"]["test"] == "exact sign-flip permutation"
    assert found["significance"]["p"] == pytest.approx(2 / 2**4)
    assert [row["task"] for row in content["matrix"]][-4:] == ["t1", "t3", "t5", "t7"], "gains come last"
    differing = {each["name"] for each in content["circumstances"]["traits"] if len(set(each["values"])) > 1}
    assert differing == {"model"}


async def test_the_first_configuration_is_the_baseline_of_a_job_of_several() -> None:
    store = MemoryStore()
    await run_job(store, *(AgentSpec(name=name) for name in "abc"))
    assert await labels(store, "1") == [("a", "b"), ("a", "c")]
    assert await labels(store, "1:b", "1") == [("b", "a"), ("b", "c")], "and another one can be chosen"
    everything = pair_sides([await look_up(store, "1")], every_pair=True)
    assert [(a.label, b.label) for a, b in everything] == [("a", "b"), ("a", "c"), ("b", "c")]


async def test_nothing_is_compared_with_itself_or_twice(store: MemoryStore) -> None:
    assert await labels(store, "1", "1") == [("terminus-2 / gpt-x", "terminus-2 / claude")]
    assert len(await labels(store, "1", "2", "2")) == 1
    assert await labels(store, "1", "1:claude") == [("terminus-2 / gpt-x", "terminus-2 / claude")]


async def test_json_of_a_report_names_the_job(store: MemoryStore) -> None:
    job = await store.jobs.get(1)
    content = json.loads(json.dumps(report_json(job, await report_job(store.trials, job)), allow_nan=False))
    assert (content["job"], content["name"], content["complete"]) == (1, "job-1", True)
    assert [each["leaderboard"]["value"] for each in content["configurations"]] == [1.0, 0.5], "best first"
