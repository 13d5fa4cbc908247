"""What other doors need: trials that are released later and with a limit, jobs by what is left of them, quick stops."""

from __future__ import annotations

import pytest

from seatrial.domain.job import Job, JobCounts, JobStatus, plan
from seatrial.domain.trial import Outcome, TrialState
from seatrial.errors import NotFound
from seatrial.ports.store import JobFilter, Page, Store
from tests.contracts.store.samples import MINUTE, NOON, a_spec, all_trials, faulty, passed, submit


async def held(store: Store, trials: int = 1, origin: str = "door") -> Job:
    spec = a_spec(trials).model_copy(update={"origin": origin})
    return await store.jobs.create(spec, tuple(plan(spec)), NOON, hold=True)


async def ids(store: Store, job: Job) -> list[int]:
    return [row.trial.id for row in await all_trials(store, job.id)]


async def test_a_released_trial_carries_the_limit_of_its_release(store: Store) -> None:
    job = await held(store, 3)
    first, second, third = await ids(store, job)
    assert await store.jobs.release_trials([first], NOON, limit_sec=90.5) == 1
    assert await store.jobs.release_trials([second], NOON) == 1
    claimed = await store.trials.claim("w", MINUTE, 9, NOON)
    assert [(trial.id, trial.limit_sec) for trial in claimed] == [(first, 90.5), (second, None)]
    assert (await store.trials.get(third)).trial.state is TrialState.HELD


async def test_a_retry_forgets_nothing_and_a_second_release_sets_the_limit_anew(store: Store) -> None:
    job = await held(store)
    [trial_id] = await ids(store, job)
    await store.jobs.release_trials([trial_id], NOON, limit_sec=5)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON)
    await store.trials.finish(trial.id, 1, faulty(), NOON)
    assert await store.jobs.retry_trials([trial.id], NOON, hold=True) == 1
    assert await store.jobs.release_trials([trial.id], NOON, limit_sec=7) == 1
    [again] = await store.trials.claim("w", MINUTE, 1, NOON)
    assert (again.try_number, again.limit_sec) == (2, 7)
    assert await store.jobs.release_trials([trial.id], NOON, limit_sec=9) == 0, "it runs: there is nothing to release"
    with pytest.raises(NotFound):
        await store.jobs.release_trials([99], NOON)


async def test_jobs_by_what_is_left_of_them(store: Store) -> None:
    waiting, moving, graded, ungraded = [await held(store, 2) for _ in range(4)]
    for job in (moving, graded, ungraded):
        await store.jobs.release_trials((await ids(store, job))[:1], NOON)
    for job, result in ((graded, passed()), (ungraded, faulty())):
        [trial] = await store.trials.claim("w", MINUTE, 1, NOON, job_id=job.id)
        await store.trials.finish(trial.id, 1, result, NOON)
        await store.jobs.cancel_trials(await ids(store, job), NOON)
    await submit(store)

    async def chosen(**wanted: object) -> list[int]:
        chosen = JobFilter(origin="door", **wanted)
        listed = [job.id for job in await store.jobs.page(Page(), chosen)]
        assert await store.jobs.count(chosen) == len(listed)
        return listed

    assert await chosen(waits=True) == [waiting.id]
    assert await chosen(waits=False) == [moving.id]
    assert await chosen(status=JobStatus.COMPLETED) == [ungraded.id, graded.id]
    assert len(await chosen()) == 4
    assert await store.jobs.count(JobFilter()) == 5


async def test_numbers_of_one_door(store: Store) -> None:
    job, other = await held(store, 2), await submit(store, trials=3)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON, job_id=other.id)
    await store.trials.finish(trial.id, 1, faulty(), NOON)
    await store.jobs.release_trials(await ids(store, job), NOON)
    [mine] = await store.trials.claim("w", MINUTE, 1, NOON, job_id=job.id)
    await store.trials.finish(mine.id, 1, passed(), NOON)
    ours, everything = await store.totals.overview("door"), await store.totals.overview()
    assert ours.trials == JobCounts(queued=1, passed=1) and ours.errors == {}
    assert sum(ours.jobs.values()) == 1
    assert everything.trials == JobCounts(queued=3, passed=1, error=1) and sum(everything.errors.values()) == 1
    assert sum(everything.jobs.values()) == 2


async def test_a_worker_learns_at_once_what_to_stop(store: Store) -> None:
    job = await submit(store, trials=3)
    mine, spared = await store.trials.claim("w", MINUTE, 2, NOON)
    [theirs] = await store.trials.claim("x", MINUTE, 1, NOON)
    assert await store.trials.asked_to_stop("w") == frozenset()
    await store.jobs.cancel_trials([mine.id, theirs.id], NOON)
    assert await store.trials.asked_to_stop("w") == {mine.id}
    assert await store.trials.asked_to_stop("x") == {theirs.id}
    await store.trials.finish(mine.id, 1, passed().model_copy(update={"outcome": Outcome.CANCELLED}), NOON)
    assert await store.trials.asked_to_stop("w") == frozenset()
    assert spared.job_id == job.id
