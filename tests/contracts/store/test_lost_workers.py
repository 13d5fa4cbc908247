"""A worker that is lost with several trials: nobody is blamed for a neighbour, and whoever is to blame is found."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from seatrial.domain.fleet.worker_death import Death
from seatrial.domain.trial import OUTSIDE_LOSSES_ALLOWED, Cause, Outcome, Trial, TrialState
from seatrial.ports.store import Heartbeat, Loss, Store
from tests.contracts.store.samples import MINUTE, NOON, all_trials, faulty, passed, submit

LATER = NOON + MINUTE


async def lose(
    store: Store, *trials: Trial, last: bool = False, now: datetime = NOON, death: Death = Death.UNKNOWN
) -> list[Trial]:
    """All trials of one worker, as recovery loses them."""
    result = faulty(Cause.WORKER_LOST)
    losses = [Loss(trial_id=one.id, try_number=one.try_number, result=result, last=last) for one in trials]
    return await store.trials.lose_worker(trials[0].worker or "", losses, death, now)


async def suspects(store: Store, count: int) -> list[Trial]:
    """A job whose trials were lost together by a crash: two groups."""
    await submit(store, trials=count)
    claimed = await store.trials.claim("first", MINUTE, count, NOON - MINUTE)
    lost = await lose(store, *claimed, now=NOON, death=Death.CRASH)
    assert all(trial.suspected for trial in lost)
    return lost


async def groups(store: Store, **chosen: Any) -> list[tuple[str, int]]:
    return [(found.group, found.size) for found in await store.trials.suspects(NOON, **chosen)]


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


@pytest.mark.parametrize("death", [Death.KILLED, Death.WITH_SUPERVISOR, Death.MACHINE_GONE])
async def test_a_worker_that_was_killed_from_outside_makes_nobody_a_suspect(store: Store, death: Death) -> None:
    await submit(store, trials=3)
    for losses in range(1, OUTSIDE_LOSSES_ALLOWED + 1):
        lost = await lose(store, *await store.trials.claim(f"w{losses}", MINUTE, 3, NOON), last=True, death=death)
        assert [(one.state, one.tries_made, one.shared_losses) for one in lost] == [("queued", 0, 0)] * 3
        assert {one.outside_losses for one in lost} == {losses}
    assert [row.trial for row in await all_trials(store)] == lost
    assert await groups(store) == []


async def test_losses_from_outside_come_to_an_end(store: Store) -> None:
    await submit(store)
    for losses in range(OUTSIDE_LOSSES_ALLOWED):
        await lose(store, *await store.trials.claim(f"w{losses}", MINUTE, 1, NOON), last=True, death=Death.KILLED)
    [ended] = await lose(store, *await store.trials.claim("w", MINUTE, 1, NOON), last=True, death=Death.KILLED)
    assert (ended.outcome, ended.cause) == (Outcome.ERROR, Cause.WORKER_LOST)


async def test_an_unknown_death_makes_suspects_the_second_time(store: Store) -> None:
    await submit(store, trials=4)
    await lose(store, *await store.trials.claim("w1", MINUTE, 4, NOON))
    assert await groups(store) == []
    lost = await lose(store, *await store.trials.claim("w2", MINUTE, 4, NOON))
    assert [one.suspected for one in lost] == [True] * 4
    assert [size for _, size in await groups(store)] == [2, 2]


async def test_a_try_that_is_not_current_is_left_out(store: Store) -> None:
    await submit(store, trials=2)
    one, two = await store.trials.claim("w", MINUTE, 2, NOON)
    await store.trials.finish(one.id, 1, passed(), NOON)
    assert [lost.id for lost in await lose(store, one, two)] == [two.id]
    assert await lose(store, one, two) == [], "a second time there is nothing to lose"


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


async def test_suspects_are_halved_and_claimed_by_their_group_only(store: Store) -> None:
    lost = await suspects(store, 5)
    (first, many), (second, few) = await groups(store)
    assert (many, few) == (3, 2)
    assert [one.group for one in lost] == [first] * 3 + [second] * 2
    assert await store.trials.claim("w", MINUTE, 9, NOON) == [], "not among others"
    half = await store.trials.claim("w1", MINUTE, 9, NOON, group=first)
    assert [one.id for one in half] == [one.id for one in lost[:3]]
    assert await groups(store) == [(second, 2)], "the other half is free for another process"
    lost_again = await lose(store, *half, last=True, death=Death.CRASH)
    assert [one.state for one in lost_again] == [TrialState.QUEUED] * 3, "a loss in company never ends a trial"
    assert [size for _, size in await groups(store)] == [2, 1, 2]


async def test_a_group_is_in_one_process_only(store: Store) -> None:
    await suspects(store, 4)
    (first, _), _ = await groups(store)
    [one] = await store.trials.claim("w1", MINUTE, 1, NOON, group=first)
    assert await store.trials.claim("w2", MINUTE, 9, NOON, group=first) == []
    [two] = await store.trials.claim("w1", MINUTE, 9, NOON, group=first)
    assert one.group == two.group == first


async def test_whoever_kills_its_process_alone_is_found_and_the_others_are_cleared(store: Store) -> None:
    lost = await suspects(store, 2)
    (first, _), (second, _) = await groups(store)
    [innocent] = await store.trials.claim("w1", MINUTE, 9, NOON, group=first)
    await store.trials.finish(innocent.id, innocent.try_number, passed(), NOON)
    [culprit] = await store.trials.claim("w2", MINUTE, 9, NOON, group=second)
    [again] = await lose(store, culprit, death=Death.CRASH)
    assert (again.id, again.tries_made, again.group) == (lost[1].id, 1, second)
    [culprit] = await store.trials.claim("w3", MINUTE, 9, NOON, group=second)
    [ended] = await lose(store, culprit, last=True, death=Death.CRASH)
    assert (ended.outcome, ended.cause) == (Outcome.ERROR, Cause.WORKER_LOST)
    assert await groups(store) == []


async def test_a_suspect_that_came_to_an_end_is_no_suspect_when_it_is_tried_again(store: Store) -> None:
    await suspects(store, 2)
    (first, _), _ = await groups(store)
    [one] = await store.trials.claim("w", MINUTE, 1, NOON, group=first)
    again = await store.trials.try_again(one.id, one.try_number, faulty(), MINUTE, NOON)
    assert not again.suspected
    assert [claimed.id for claimed in await store.trials.claim("w", MINUTE, 1, LATER)] == [one.id]


@pytest.mark.parametrize("death", [Death.WITH_SUPERVISOR, Death.MACHINE_GONE])
async def test_the_search_goes_on_where_it_was_if_more_fell_than_its_process(store: Store, death: Death) -> None:
    await suspects(store, 4)
    before = await groups(store)
    half = await store.trials.claim("w", MINUTE, 9, NOON, group=before[0][0])
    await lose(store, *half, death=death)
    assert await groups(store) == before
    half = await store.trials.claim("w", MINUTE, 9, NOON, group=before[0][0])
    await lose(store, *half, death=Death.KILLED)
    assert [size for _, size in await groups(store)] == [1, 1, 2], "a process of suspects is not killed by chance"


async def test_suspects_are_at_no_other_jobs_expense(store: Store) -> None:
    await suspects(store, 4)
    other = await submit(store, trials=3)
    assert [one.job_id for one in await store.trials.claim("w", MINUTE, 9, NOON)] == [other.id] * 3


async def test_suspects_keep_to_their_jobs_limit_and_to_the_job_asked_for(store: Store) -> None:
    job = await submit(store, trials=4, concurrency=4, keys="aaaaaaaaaaaa:sealed")
    await lose(store, *await store.trials.claim("w", MINUTE, 4, NOON), death=Death.CRASH)
    other = await submit(store)
    (first, size), (second, _) = await groups(store, job_id=job.id, seal="aaaaaaaaaaaa")
    assert await groups(store, job_id=other.id) == [] == await groups(store, seal="bbbbbbbbbbbb")
    assert await store.trials.claim("w", MINUTE, 9, NOON, job_id=other.id, group=first) == []
    assert await store.trials.claim("w", MINUTE, 9, NOON, seal="bbbbbbbbbbbb", group=first) == []
    assert len(await store.trials.claim("w", MINUTE, 9, NOON, job_id=job.id, group=first)) == size
    assert [one.group for one in await store.trials.claim("v", MINUTE, 1, NOON, group=second)] == [second]


async def test_a_job_that_runs_one_at_a_time_has_one_suspect_at_a_time(store: Store) -> None:
    await submit(store, trials=2, concurrency=1)
    for worker in ("w1", "w2"):
        [one] = await store.trials.claim(worker, MINUTE, 1, NOON)
        result = faulty(Cause.WORKER_LOST)
        await submit(store)  # a neighbour, so that the loss is shared
        [beside] = await store.trials.claim(worker, MINUTE, 1, NOON)
        losses = [Loss(trial_id=each.id, try_number=1, result=result, last=False) for each in (one, beside)]
        await store.trials.lose_worker(worker, losses, Death.CRASH, NOON)
    mine = [found.group for found in await store.trials.suspects(NOON, job_id=one.job_id)]
    [first] = await store.trials.claim("v1", MINUTE, 9, NOON, group=mine[0])
    assert await store.trials.claim("v2", MINUTE, 9, NOON, group=mine[1]) == []
    await store.trials.finish(first.id, first.try_number, passed(), NOON)
    assert len(await store.trials.claim("v2", MINUTE, 9, NOON, group=mine[1])) == 1


async def test_retrying_forgets_the_suspicion(store: Store) -> None:
    await suspects(store, 2)
    (first, _), _ = await groups(store)
    [claimed] = await store.trials.claim("w", MINUTE, 1, NOON, group=first)
    await store.trials.finish(claimed.id, claimed.try_number, faulty(), NOON)
    await store.jobs.retry_trials([claimed.id], NOON)
    retried = (await store.trials.get(claimed.id)).trial
    assert (retried.suspected, retried.search_group, retried.outside_losses) == (False, None, 0)


async def test_how_a_worker_died_is_kept_with_it_until_it_is_heard_again(store: Store) -> None:
    about = Heartbeat(worker="w", host="h", pid=1, capacity=1, started_at=NOON)
    await store.workers.beat(about, NOON)
    await store.workers.died("w", Death.CRASH)
    await store.workers.died("unheard", Death.CRASH)
    assert [(row.worker, row.death, row.seen_at) for row in await store.workers.all()] == [("w", Death.CRASH, NOON)]
    await store.workers.beat(about, LATER)
    assert [row.death for row in await store.workers.all()] == [None]
