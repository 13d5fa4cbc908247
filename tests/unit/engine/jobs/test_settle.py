"""A job that stops when settled, in an engine over the store in memory: released in rounds, dropped, resumed."""

from __future__ import annotations

import contextlib
import random
from datetime import UTC, datetime, timedelta

import pytest

from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.reports.settling import Finding, UntilSettled
from seatrial.domain.result import Result
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Outcome, Trial
from seatrial.engine.jobs.settle import Settler
from seatrial.engine.reports.listing import JobListing
from seatrial.engine.reports.reporting import report_job
from seatrial.errors import StoreUnavailable
from seatrial.testing.faulty_store import FaultyStore
from seatrial.testing.quiet_wake_up import QuietWakeUp

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PASS = Result(outcome=Outcome.PASSED, rewards={"reward": 1.0})
FAIL = Result(outcome=Outcome.FAILED, rewards={"reward": 0.0})
ERROR = Result(outcome=Outcome.ERROR, cause=Cause.SANDBOX)


def settler(store: FaultyStore) -> Settler:
    return Settler(store, QuietWakeUp(), lambda: NOON)


async def a_job(store: FaultyStore, tasks: int = 12, attempts: int = 5) -> Job:
    refs = tuple(TaskRef(name=f"task-{number}", digest=f"sha256:{number}") for number in range(tasks))
    agents = (AgentSpec(name="oracle"), AgentSpec(name="nop"))
    spec = JobSpec(tasks=refs, agents=agents, attempts=attempts, until_settled=UntilSettled(seed=1))
    return await store.jobs.create(spec, tuple(plan(spec)), NOON, hold=True)


async def work(store: FaultyStore, outcome: type[Result] | None = None) -> list[Trial]:
    """Runs what is queued: the oracle passes, nop fails."""
    claimed = await store.trials.claim("w", MINUTE, 1000, NOON)
    for trial in claimed:
        await store.trials.finish(trial.id, trial.try_number, PASS if trial.agent == "oracle" else FAIL, NOON)
    return claimed


async def test_a_clear_difference_stops_the_job_early() -> None:
    store = FaultyStore()
    job = await a_job(store)
    ran = 0
    while (await store.jobs.get(job.id)).ended_at is None:
        await settler(store).sweep()
        ran += len(await work(store))
    report = await report_job(store.trials, job)
    assert report.settled is not None
    found = report.settled
    assert (found.finding, found.better, found.trials_run, found.not_needed) == (
        Finding.A_BETTER,
        "oracle",
        ran,
        120 - ran,
    )
    assert ran <= 48
    assert (report.complete, report.removed, report.not_needed) == (True, 0, 120 - ran)
    [line] = [each.headline for each in report.configurations if each.label == "oracle"]
    assert (line.coverage, line.so_far, line.value) == (1.0, False, 1.0)
    listed = (await JobListing(store.jobs).line(await store.jobs.get(job.id))).scores
    assert listed is not None
    assert {each.label: each.coverage for each in listed.items} == {"oracle": 1.0, "nop": 1.0}
    assert report.rules is not None
    assert [broken.rule for broken in report.rules.broken] == ["at least 5 trials of every task"]
    assert report.notices[0].startswith(found.sentence)


async def test_engines_that_die_and_several_at_once_change_nothing() -> None:
    """A new engine at every step, a second one beside it, and a store that fails in between: as with a single one."""
    expected = await _ids_run(FaultyStore(), faults=False)
    assert await _ids_run(FaultyStore(), faults=True) == expected


async def _ids_run(store: FaultyStore, *, faults: bool) -> list[int]:
    job = await a_job(store)
    rng, ran = random.Random(1), []
    steady = settler(store)
    while (await store.jobs.get(job.id)).ended_at is None:
        if faults:
            store.faults[rng.choice(["jobs.release_trials", "jobs.drop_trials", "trials.numbers"])] = StoreUnavailable()
            with contextlib.suppress(StoreUnavailable):
                await settler(store).sweep()
            store.faults.clear()
            await settler(store).sweep()
        await steady.sweep()
        ran += [trial.id for trial in await work(store)]
    assert len(ran) == len(set(ran))
    return sorted(ran)


async def test_an_error_that_is_retried_after_the_end_runs_again() -> None:
    store = FaultyStore()
    job = await a_job(store)
    await settler(store).sweep()
    [first, *others] = await store.trials.claim("w", MINUTE, 1000, NOON)
    await store.trials.finish(first.id, 1, ERROR, NOON)
    for trial in others:
        await store.trials.finish(trial.id, 1, PASS if trial.agent == "oracle" else FAIL, NOON)
    while (await store.jobs.get(job.id)).ended_at is None:
        await settler(store).sweep()
        await work(store)
    assert await store.jobs.retry_trials([first.id], NOON, hold=True) == 1
    await settler(store).sweep()
    assert [trial.id for trial in await work(store)] == [first.id]
    await settler(store).sweep()
    assert (await store.jobs.get(job.id)).ended_at is not None


@pytest.mark.parametrize("attempts", [1, 5])
async def test_a_job_that_is_never_settled_runs_to_its_maximum(attempts: int) -> None:
    store = FaultyStore()
    job = await a_job(store, tasks=3, attempts=attempts)
    while (await store.jobs.get(job.id)).ended_at is None:
        await settler(store).sweep()
        for trial in await store.trials.claim("w", MINUTE, 1000, NOON):
            even = (trial.attempt + trial.agent_index) % 2 == 0
            await store.trials.finish(trial.id, trial.try_number, PASS if even else FAIL, NOON)
    report = await report_job(store.trials, job)
    assert report.settled is not None
    assert (report.settled.finding, report.settled.trials_run) == (Finding.NOT_SETTLED, 6 * attempts)
