"""What a job would take, from what earlier trials took."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from seatrial.domain.agents.catalogue import takes_model
from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.model_calls.record import ReplayMiss
from seatrial.domain.model_calls.replay import Replay
from seatrial.domain.result import Result, Usage
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Mark, Outcome
from seatrial.engine.jobs.estimate import Estimate, Estimator
from seatrial.ports.store import Heartbeat
from seatrial.testing.memory_store import MemoryStore

NOW = datetime(2026, 5, 1, tzinfo=UTC)
MODEL = AgentSpec(name="terminus-2", model="scripted/shell")
ORACLE = AgentSpec(name="oracle")


def a_task(name: str) -> Task:
    return Task(digest=f"sha256:{name:0>64}", name=name, format=TaskFormat.HARBOR, instruction="")


def a_spec(
    *names: str, agents: tuple[AgentSpec, ...] = (MODEL,), attempts: int = 1, at_once: int | None = None
) -> JobSpec:
    refs = tuple(TaskRef(name=name, digest=a_task(name).digest) for name in names)
    return JobSpec(tasks=refs, agents=agents, attempts=attempts, concurrency=at_once)


async def ran(
    store: MemoryStore, spec: JobSpec, seconds: float, cost: float | None, marks: tuple[Mark, ...] = ()
) -> None:
    job = await store.jobs.create(spec, tuple(plan(spec)), NOW)
    for trial in await store.trials.claim("w", timedelta(minutes=1), 100, NOW, job_id=job.id):
        usage = Usage(cost_usd=cost)
        result = Result(outcome=Outcome.PASSED, rewards={"reward": 1.0}, seconds=seconds, usage=usage, marks=marks)
        await store.trials.finish(trial.id, trial.try_number, result, NOW)


async def estimate(store: MemoryStore, spec: JobSpec) -> Estimate:
    tasks = [a_task(ref.name) for ref in spec.tasks]
    return await Estimator(store, lambda: NOW, 4, takes_model).estimate(spec, tasks)


async def test_without_history_numbers_are_missing_and_said_to_be() -> None:
    found = await estimate(MemoryStore(), a_spec("a", "b", attempts=5))
    assert (found.trials, found.tasks, found.agents, found.based_on) == (10, 2, 1, 0)
    assert found.seconds is found.wall_seconds is found.cost_usd is None
    assert len(found.warnings) == 2


async def test_history_of_the_same_pair_counts_and_of_other_tasks_stands_in() -> None:
    store = MemoryStore()
    await ran(store, a_spec("a", attempts=2), seconds=10, cost=0.5)
    await ran(store, a_spec("b"), seconds=20, cost=1.5)
    found = await estimate(store, a_spec("a", "c", attempts=2))
    assert found.seconds == pytest.approx(2 * (10 + 10)), (
        "c was never run; only a is among the tasks that are asked for"
    )
    both = await estimate(store, a_spec("a", "b", "c"))
    assert both.seconds == pytest.approx(10 + 20 + 15)
    assert both.cost_usd == pytest.approx(0.5 + 1.5 + 1.0)
    assert both.based_on == 3


async def test_a_strict_replay_costs_nothing_and_teaches_nothing() -> None:
    store = MemoryStore()
    await ran(store, a_spec("a"), seconds=10, cost=0.5)
    await ran(store, a_spec("a"), seconds=1, cost=0.0, marks=(Mark.REPLAYED,))
    assert (await estimate(store, a_spec("a"))).cost_usd == pytest.approx(0.5)
    replay = a_spec("a").model_copy(update={"replay": Replay(trial=1)})
    assert (await estimate(store, replay)).cost_usd == 0.0
    live = a_spec("a").model_copy(update={"replay": Replay(trial=1, miss=ReplayMiss.LIVE)})
    assert (await estimate(store, live)).cost_usd == pytest.approx(0.5)


async def test_another_agent_is_no_evidence_and_the_oracle_costs_nothing() -> None:
    store = MemoryStore()
    await ran(store, a_spec("a", agents=(ORACLE,)), seconds=3, cost=None)
    assert (await estimate(store, a_spec("a"))).seconds is None
    oracle = await estimate(store, a_spec("a", agents=(ORACLE,)))
    assert (oracle.seconds, oracle.cost_usd) == (3.0, 0.0)
    assert oracle.detectable_difference is None


async def test_wall_time_goes_by_the_workers_that_live() -> None:
    store = MemoryStore()
    await ran(store, a_spec("a"), seconds=10, cost=0.0)
    beat = Heartbeat(worker="w", host="h", pid=1, capacity=10, started_at=NOW)
    await store.workers.beat(beat, NOW)
    wide = await estimate(store, a_spec("a", attempts=20))
    assert (wide.wall_seconds, wide.warnings) == (pytest.approx(20), ())
    assert (await estimate(store, a_spec("a", attempts=20, at_once=2))).wall_seconds == pytest.approx(100)
    assert (await estimate(store, a_spec("a"))).wall_seconds == pytest.approx(10)
