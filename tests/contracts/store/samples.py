"""Values that the store's tests are made of. The clock stands at ``NOON``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.result import Result, TestResult, TestStatus, Usage
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Cause, Mark, Outcome
from seatrial.ports.store import Store, TrialFilter, TrialRow

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def a_task(name: str = "hello", content: str = "a") -> Task:
    return Task(digest=f"sha256:{content * 64}"[:71], name=name, format=TaskFormat.HARBOR, instruction="Say hello.")


def a_spec(trials: int = 1, concurrency: int | None = None, name: str = "", task: str = "hello") -> JobSpec:
    refs = tuple(TaskRef(name=task, digest=f"sha256:{number:064x}") for number in range(trials))
    agents = (AgentSpec(name="oracle", model=None, options={"temperature": 0.5}),)
    return JobSpec(name=name, tasks=refs, agents=agents, concurrency=concurrency)


async def submit(
    store: Store, trials: int = 1, concurrency: int | None = None, task: str = "hello", keys: str | None = None
) -> Job:
    spec = a_spec(trials, concurrency, task=task)
    return await store.jobs.create(spec, tuple(plan(spec)), NOON, keys=keys)


def passed(reward: float = 1.0) -> Result:
    return Result(
        outcome=Outcome.PASSED,
        rewards={"reward": reward},
        marks=(Mark.AGENT_TIMEOUT, Mark.OVER_BUDGET),
        tests=(TestResult(name="test_it", status=TestStatus.PASSED, message="nul \x00, umlaut ü"),),
        usage=Usage(input_tokens=1200, output_tokens=34, cost_usd=0.0125),
        seconds=2.5,
    )


def faulty(cause: Cause = Cause.SANDBOX) -> Result:
    return Result(outcome=Outcome.ERROR, cause=cause, message="The sandbox vanished.", seconds=1.0)


def cancelled() -> Result:
    return Result(outcome=Outcome.CANCELLED, message="Stopped.")


async def all_trials(store: Store, job_id: int | None = None) -> list[TrialRow]:
    return [row async for row in store.trials.each(TrialFilter(job_id=job_id))]


async def kinds(store: Store, job_id: int | None = None, trial_id: int | None = None) -> list[str]:
    return [event.kind.value for event in await store.events.read(job_id=job_id, trial_id=trial_id)]
