"""A worker that is lost with several trials: nobody is blamed for a neighbour, and whoever is to blame is found."""

from __future__ import annotations

from datetime import datetime

from seatrial.domain.isolation import LONGEST_WAIT
from seatrial.domain.trial import Cause, Outcome, Trial, TrialState
from seatrial.ports.store import Store
from tests.contracts.store.samples import MINUTE, NOON, all_trials, faulty, passed, submit

LATER = NOON + MINUTE


async def lose(store: Store, *trials: Trial, last: bool = False, now: datetime = NOON) -> list[Trial]:
    lost = faulty(Cause.WORKER_LOST)
    return [await store.trials.lose_worker(trial.id, trial.try_number, lost, last, now) for trial in trials]


async def suspects(store: Store, count: int) -> list[Trial]:
    """A job whose trials were lost together as often as it takes."""
    await submit(store, trials=count)
    for worker, since in (("first", NOON - 2 * MINUTE), ("second", NOON - MINUTE)):
        lost = await lose(store, *await store.trials.claim(worker, MINUTE, count, since), now=since + MINUTE)
    assert all(trial.suspected for trial in lost)
    return lost


async def test_a_loss_in_company_does_not_count(store: Store) -> None:
    await submit(store, trials=3)
    lost = await lose(store, *await store.trials.claim("w", MINUTE, 3, NOON), last=True, now=LATER)
    assert [(trial.state, trial.tries_made, trial.shared_losses) for trial in lost] == [("queued", 0, 1)] * 3
    assert [row.trial for row in await all_trials(store)] == lost
    assert [a_try.result for a_try in await store.trials.tries(lost[0].id)] == [faulty(Cause.WORKER_LOST)]
    assert len(await store.trials.claim("next", MINUTE, 3, LATER)) == 3, "the first time they go on together"


async def test_a_loss_alone_counts_and_the_last_one_ends_the_trial(store: Store) -> None:
    job = await submit(store)
    [queued] = await lose(store, *await store.trials.claim("w1", MINUTE, 1, NOON))
    assert (queued.state, queued.tries_made, queued.shared_losses) == (TrialState.QUEUED, 1, 0)
    [ended] = await lose(store, *await store.trials.claim("w2", MINUTE, 1, NOON), last=True)
    assert (ended.outcome, ended.cause) == (Outcome.ERROR, Cause.WORKER_LOST)
    assert (await store.jobs.get(job.id)).ended_at == NOON


async def test_company_is_whoever_was_there_at_any_moment(store: Store) -> None:
    await submit(store, trials=3)
    [early] = await store.trials.claim("w", MINUTE, 1, NOON)
    [middle] = await store.trials.claim("w", MINUTE, 1, NOON + MINUTE)
    await store.trials.finish(early.id, 1, passed(), NOON + 2 * MINUTE)
    [late] = await store.trials.claim("w", MINUTE, 1, NOON + 3 * MINUTE)
    await store.trials.finish(middle.id, 1, passed(), NOON + 3 * MINUTE)
    [lost] = await lose(store, late, now=NOON + 4 * MINUTE)
    assert lost.shared_losses == 0, "the others were gone when it came"
    [again] = await store.trials.claim("w", MINUTE, 1, NOON + 5 * MINUTE)
    await submit(store)
    [beside] = await store.trials.claim("w", MINUTE, 1, NOON + 6 * MINUTE)
    await store.trials.finish(beside.id, 1, passed(), NOON + 7 * MINUTE)
    [lost] = await lose(store, again, now=NOON + 8 * MINUTE)
    assert lost.shared_losses == 1, "another one came and went beside it"


async def test_a_cancelled_trial_ends_with_its_worker(store: Store) -> None:
    job = await submit(store, trials=2)
    claimed = await store.trials.claim("w", MINUTE, 2, NOON)
    await store.jobs.cancel(job.id, NOON)
    assert [trial.outcome for trial in await lose(store, *claimed)] == [Outcome.CANCELLED] * 2


async def test_suspects_run_alone(store: Store) -> None:
    await suspects(store, 3)
    [one] = await store.trials.claim("w1", MINUTE, 9, NOON)
    await submit(store, trials=2)
    assert await store.trials.claim("w1", MINUTE, 9, NOON) == [], "nothing beside a suspect, suspected or not"
    assert len(await store.trials.claim("w2", MINUTE, 1, NOON)) == 1
    [other] = await store.trials.claim("w2", MINUTE, 9, NOON)
    assert not other.suspected, "a worker that holds something gets no suspect"
    assert await store.trials.claim("w2", MINUTE, 9, NOON) == []
    await store.trials.finish(one.id, one.try_number, passed(), LATER)
    [two] = await store.trials.claim("w1", MINUTE, 9, LATER)
    assert two.suspected
    [lost] = await lose(store, two, last=True, now=LATER)
    assert (lost.outcome, lost.cause) == (Outcome.ERROR, Cause.WORKER_LOST)


async def test_others_go_first_but_not_for_ever(store: Store) -> None:
    _, unlucky = await suspects(store, 2)
    await store.jobs.cancel_trials([unlucky.id], NOON)
    await submit(store, trials=4)
    first = await store.trials.claim("w", MINUTE, 2, NOON)
    assert [trial.suspected for trial in first] == [False, False]
    overdue = NOON + LONGEST_WAIT
    assert await store.trials.claim("w", MINUTE, 2, overdue) == [], "it makes room"
    for trial in first:
        await store.trials.finish(trial.id, 1, passed(), overdue)
    [suspect] = await store.trials.claim("w", MINUTE, 2, overdue)
    assert suspect.suspected
    await store.trials.finish(suspect.id, suspect.try_number, passed(), overdue)
    assert len(await store.trials.claim("w", MINUTE, 9, overdue)) == 2


async def test_a_suspect_keeps_to_its_jobs_limit_and_to_the_job_asked_for(store: Store) -> None:
    [suspect, _] = await suspects(store, 2)
    other = await submit(store, trials=2, concurrency=1)
    assert [trial.job_id for trial in await store.trials.claim("w1", MINUTE, 9, NOON, job_id=other.id)] == [other.id]
    assert await store.trials.claim("w2", MINUTE, 9, NOON, job_id=other.id) == []
    [alone] = await store.trials.claim("w2", MINUTE, 9, NOON, job_id=suspect.job_id)
    assert alone.id == suspect.id


async def test_retrying_forgets_the_suspicion(store: Store) -> None:
    trial, _ = await suspects(store, 2)
    [claimed] = await store.trials.claim("w", MINUTE, 1, NOON)
    assert claimed.id == trial.id
    await store.trials.finish(claimed.id, claimed.try_number, faulty(), NOON)
    await store.jobs.retry_trials([claimed.id], NOON)
    assert not (await store.trials.get(claimed.id)).trial.suspected
