"""Trials that a job does not need any more are dropped, unless somebody claimed them."""

from __future__ import annotations

from seatrial.domain.job import AgentSpec, Job, JobCounts, JobSpec, plan
from seatrial.domain.reports.settling import UntilSettled
from seatrial.domain.task import TaskRef
from seatrial.ports.store import JobFilter, Page, Store
from tests.contracts.store.samples import MINUTE, NOON, all_trials, faulty, kinds, passed, submit


async def settling(store: Store) -> Job:
    task = TaskRef(name="hello", digest="sha256:1")
    agents = (AgentSpec(name="oracle", options={"until_settled": {}}), AgentSpec(name="nop"))
    spec = JobSpec(tasks=(task,), agents=agents, attempts=2, until_settled=UntilSettled(seed=1))
    return await store.jobs.create(spec, tuple(plan(spec)), NOON, hold=True)


async def test_held_and_queued_trials_are_dropped_and_others_stay(store: Store) -> None:
    job, other = await settling(store), await submit(store)
    ids = [row.trial.id for row in await all_trials(store, job.id)]
    await store.jobs.release_trials(ids[:3], NOON)
    [running] = await store.trials.claim("w", MINUTE, 1, NOON, job_id=job.id)
    foreign = (await all_trials(store, other.id))[0].trial.id
    assert await store.jobs.drop_trials(job.id, [*ids, foreign, 10**9], NOON) == 3
    assert await store.jobs.counts([job.id, other.id]) == {job.id: JobCounts(running=1), other.id: JobCounts(queued=1)}
    assert await store.jobs.drop_trials(job.id, ids, NOON) == 0
    assert (await kinds(store, job.id)).count("job.trimmed") == 1
    await store.trials.finish(running.id, 1, passed(), NOON + MINUTE)
    assert (await store.jobs.get(job.id)).ended_at == NOON + MINUTE


async def test_a_job_ends_when_its_last_open_trials_are_dropped(store: Store) -> None:
    job = await settling(store)
    ids = [row.trial.id for row in await all_trials(store, job.id)]
    await store.jobs.release_trials(ids[:1], NOON)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON, job_id=job.id)
    await store.trials.finish(trial.id, 1, passed(), NOON)
    await store.jobs.drop_trials(job.id, ids, NOON + MINUTE)
    assert (await store.jobs.get(job.id)).ended_at == NOON + MINUTE
    assert (await kinds(store, job.id))[-2:] == ["job.trimmed", "job.ended"]


async def test_a_trial_with_a_try_and_an_added_attempt_are_not_dropped(store: Store) -> None:
    job = await submit(store, trials=2)
    first, second = await store.trials.claim("w", MINUTE, 2, NOON)
    await store.trials.try_again(first.id, 1, faulty(), MINUTE, NOON)
    await store.trials.finish(second.id, 1, passed(), NOON)
    [added] = await store.jobs.add_attempts([second.id], NOON)
    assert await store.jobs.drop_trials(job.id, [first.id, second.id, added], NOON) == 0


async def test_open_jobs_that_stop_when_settled_are_found(store: Store) -> None:
    job, other = await settling(store), await submit(store)
    assert [each.id for each in await store.jobs.page(Page(), JobFilter(settling=True))] == [job.id]
    assert [each.id for each in await store.jobs.page(Page(), JobFilter(settling=False))] == [other.id]
    await store.jobs.cancel(job.id, NOON)
    assert await store.jobs.page(Page(), JobFilter(settling=True)) == []
