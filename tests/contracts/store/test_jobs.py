"""Jobs are created whole, counted from their trials, cancelled and retried."""

from __future__ import annotations

import pytest

from seatrial.domain.job import JobCounts
from seatrial.domain.trial import Outcome, TrialState
from seatrial.errors import Conflict, NotFound
from seatrial.ports.store import Page, Store
from tests.contracts.store.conftest import StoreOpener
from tests.contracts.store.samples import (
    MINUTE,
    NOON,
    a_spec,
    all_trials,
    cancelled,
    faulty,
    kinds,
    passed,
    submit,
)


async def test_a_job_comes_with_all_of_its_trials(store: Store) -> None:
    job = await submit(store, trials=3)
    assert await store.jobs.get(job.id) == job
    assert job.spec == a_spec(3) and job.created_at == NOON and job.ended_at is None
    rows = await all_trials(store, job.id)
    assert [row.trial.task for row in rows] == list(job.spec.tasks)
    assert {row.trial.state for row in rows} == {TrialState.QUEUED}
    assert await kinds(store, job.id) == ["job.created"]


async def test_jobs_are_listed_newest_first_in_pages(store: Store) -> None:
    ids = [(await submit(store)).id for _ in range(5)]
    first = await store.jobs.page(Page(limit=2))
    assert [job.id for job in first] == [ids[4], ids[3]]
    second = await store.jobs.page(Page(limit=10, before=first[-1].id))
    assert [job.id for job in second] == [ids[2], ids[1], ids[0]]


async def test_a_job_is_the_same_however_often_it_is_read(open_store: StoreOpener) -> None:
    store = await open_store()
    made = [await submit(store, trials=trials) for trials in (1, 2, 3)]
    other = await open_store()
    await other.jobs.get(made[1].id)
    for _ in range(2):  # some of it may be remembered the second time
        assert await other.jobs.page(Page()) == made[::-1]
        assert [await other.jobs.get(job.id) for job in made] == made
    await store.jobs.cancel(made[0].id, NOON)
    ended = await store.jobs.get(made[0].id)
    assert ended.ended_at == NOON
    assert (await other.jobs.page(Page()))[-1] == await other.jobs.get(made[0].id) == ended
    (trial,) = [row.trial for row in await all_trials(store, made[0].id)]
    await store.jobs.retry_trials([trial.id], NOON)
    assert (await other.jobs.page(Page()))[-1] == await other.jobs.get(made[0].id) == made[0]
    await store.jobs.cancel(made[0].id, NOON)
    await store.jobs.delete(made[0].id)
    assert await other.jobs.page(Page()) == made[:0:-1]
    for look in (lambda: other.jobs.get(made[0].id), lambda: other.trials.history(trial.id)):
        with pytest.raises(NotFound):
            await look()


async def test_unknown_jobs_are_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.jobs.get(99)
    with pytest.raises(NotFound):
        await store.jobs.cancel(99, NOON)
    with pytest.raises(NotFound):
        await store.jobs.delete(99)
    with pytest.raises(NotFound):
        await store.jobs.retry_trials([99], NOON)


async def test_counts_of_many_jobs(store: Store) -> None:
    one, two = await submit(store, trials=6), await submit(store, trials=2)
    a, b, c, d, _ = await store.trials.claim("w", MINUTE, 5, NOON, job_id=one.id)
    await store.trials.finish(a.id, a.try_number, passed(), NOON)
    await store.trials.finish(b.id, b.try_number, passed(0.0).model_copy(update={"outcome": Outcome.FAILED}), NOON)
    await store.trials.finish(c.id, c.attempt, faulty(), NOON)
    await store.trials.finish(d.id, d.try_number, cancelled(), NOON)
    assert await store.jobs.counts([one.id, two.id, 99]) == {
        one.id: JobCounts(queued=1, running=1, passed=1, failed=1, error=1, cancelled=1),
        two.id: JobCounts(queued=2),
        99: JobCounts(),
    }
    assert await store.jobs.counts([]) == {}


async def test_cancelling_ends_what_is_queued_and_asks_what_runs(store: Store) -> None:
    job, bystander = await submit(store, trials=3), await submit(store)
    [running] = await store.trials.claim("w", MINUTE, 1, NOON, job_id=job.id)
    assert await store.jobs.cancel(job.id, NOON + MINUTE) == 3
    assert (await store.jobs.get(job.id)).cancelled_at == NOON + MINUTE
    assert await store.jobs.counts([job.id]) == {job.id: JobCounts(running=1, cancelled=2)}
    assert (await store.trials.get(running.id)).trial.cancel_requested
    ended = [row.trial for row in await all_trials(store, job.id) if row.trial.state is TrialState.ENDED]
    assert [trial.ended_at for trial in ended] == [NOON + MINUTE] * 2
    assert await kinds(store, job.id) == [
        "job.created",
        "trial.claimed",
        "job.cancelled",
        "trial.ended",
        "trial.ended",
    ]
    assert await store.jobs.counts([bystander.id]) == {bystander.id: JobCounts(queued=1)}


async def test_cancelling_again_or_too_late_changes_nothing(store: Store) -> None:
    job = await submit(store, trials=2)
    assert await store.jobs.cancel(job.id, NOON) == 2
    before = await kinds(store)
    assert before[-1] == "job.ended"
    assert await store.jobs.cancel(job.id, NOON + MINUTE) == 0
    assert (await store.jobs.get(job.id)).cancelled_at == NOON
    assert await kinds(store) == before


async def test_a_job_ends_once_with_its_last_trial(store: Store) -> None:
    job = await submit(store, trials=2)
    first, second = await store.trials.claim("w", MINUTE, 2, NOON)
    await store.trials.finish(first.id, 1, passed(), NOON)
    assert (await store.jobs.get(job.id)).ended_at is None
    assert "job.ended" not in await kinds(store, job.id)
    await store.trials.finish(second.id, 1, passed(), NOON + MINUTE)
    assert (await store.jobs.get(job.id)).ended_at == NOON + MINUTE
    assert (await kinds(store, job.id)).count("job.ended") == 1


async def test_a_job_without_trials_has_ended(store: Store) -> None:
    job = await store.jobs.create(a_spec(1), (), NOON)
    assert job.ended_at == NOON and await store.jobs.get(job.id) == job
    assert await kinds(store) == ["job.created", "job.ended"]


async def test_retried_trials_are_queued_with_their_attempts_kept(store: Store) -> None:
    job = await submit(store, trials=2)
    done, running = await store.trials.claim("w", MINUTE, 2, NOON)
    await store.trials.finish(done.id, 1, faulty(), NOON)
    assert await store.jobs.retry_trials([done.id, running.id, done.id], NOON + MINUTE) == 1
    again = (await store.trials.get(done.id)).trial
    assert (again.state, again.outcome, again.cause, again.try_number) == (TrialState.QUEUED, None, None, 1)
    assert again.tries_made == 0 and again.started_at is None and again.ended_at is None
    assert (await store.trials.get(running.id)).trial.state is TrialState.RUNNING
    assert [a_try.result for a_try in await store.trials.tries(done.id)] == [faulty()]
    [claimed] = await store.trials.claim("w", MINUTE, 5, NOON + MINUTE)
    assert (claimed.id, claimed.try_number) == (done.id, 2)
    assert (await kinds(store, job.id)).count("trial.retry") == 1


async def test_a_retry_opens_an_ended_job_again(store: Store) -> None:
    job = await submit(store)
    await store.jobs.cancel(job.id, NOON)
    [row] = await all_trials(store, job.id)
    await store.jobs.retry_trials([row.trial.id], NOON + MINUTE)
    reopened = await store.jobs.get(job.id)
    assert reopened.ended_at is None and reopened.cancelled_at is None
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON + MINUTE)
    await store.trials.finish(trial.id, trial.try_number, passed(), NOON + 2 * MINUTE)
    assert (await store.jobs.get(job.id)).ended_at == NOON + 2 * MINUTE
    assert (await kinds(store, job.id)).count("job.ended") == 2


async def test_an_ended_job_can_be_forgotten_and_its_ids_are_not_given_again(store: Store) -> None:
    kept, job = await submit(store), await submit(store, trials=2)
    with pytest.raises(Conflict):
        await store.jobs.delete(job.id)
    await store.jobs.cancel(job.id, NOON)
    gone = [row.trial.id for row in await all_trials(store, job.id)]
    last_seq = (await store.events.read())[-1].seq
    await store.jobs.delete(job.id)
    with pytest.raises(NotFound):
        await store.jobs.get(job.id)
    with pytest.raises(NotFound):
        await store.trials.get(gone[0])
    assert await kinds(store) == ["job.created"]
    assert [row.trial.job_id for row in await all_trials(store)] == [kept.id]
    later = await submit(store)
    assert later.id > job.id
    assert (await all_trials(store, later.id))[0].trial.id > max(gone)
    assert (await store.events.read())[-1].seq > last_seq


async def test_the_install_id_stays(store: Store) -> None:
    first = await store.install_id()
    assert len(first) == 16 and first == await store.install_id()


async def test_the_first_version_that_is_recorded_stays(open_store: StoreOpener) -> None:
    one, other = await open_store(), await open_store()
    job = await submit(one)
    assert await one.jobs.record_version(job.id, "kit", "") == ""
    assert await one.jobs.record_version(job.id, "kit", "1") == "1"
    assert [await store.jobs.record_version(job.id, "kit", "2") for store in (one, other)] == ["1", "1"]
    assert await other.jobs.record_version(job.id, "kit", "") == "1"
    assert await other.jobs.record_version(job.id, "other", "3") == "3"
    with pytest.raises(NotFound):
        await one.jobs.record_version(job.id + 1000, "kit", "1")


async def test_versions_go_with_their_job(store: Store) -> None:
    job = await submit(store)
    await store.jobs.record_version(job.id, "kit", "1")
    await store.jobs.cancel(job.id, NOON)
    await store.jobs.delete(job.id)
    assert await store.jobs.record_version(job.id, "kit", "") == ""
