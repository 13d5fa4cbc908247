"""A claim is exclusive, fair over jobs, and keeps to each job's limits."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import accumulate

from seatrial.domain.trial import Claimed, Phase, TrialState, transition
from seatrial.ports.store import Store
from tests.contracts.store.conftest import StoreOpener
from tests.contracts.store.samples import MINUTE, NOON, all_trials, faulty, kinds, passed, submit


async def test_a_claim_is_what_the_transition_says(store: Store) -> None:
    await submit(store)
    [row] = await all_trials(store)
    [claimed] = await store.trials.claim("w1", MINUTE, 5, NOON)
    assert claimed == transition(row.trial, Claimed(worker="w1", lease=MINUTE), NOON)
    assert claimed.state is TrialState.RUNNING and claimed.try_number == 1 and claimed.phase is Phase.PREPARING
    assert (await store.trials.get(claimed.id)).trial == claimed
    [event] = await store.events.read(trial_id=claimed.id)
    assert (event.kind.value, event.attempt, event.data, event.at) == ("trial.claimed", 1, {"worker": "w1"}, NOON)
    assert await store.trials.claim("w2", MINUTE, 5, NOON) == []


async def test_claims_go_in_order_of_id_and_stop_at_the_limit(store: Store) -> None:
    await submit(store, trials=5)
    first = await store.trials.claim("w", MINUTE, 3, NOON)
    second = await store.trials.claim("w", MINUTE, 3, NOON)
    ids = [trial.id for trial in first + second]
    assert [len(first), len(second)] == [3, 2] and ids == sorted(ids)
    assert await store.trials.claim("w", MINUTE, 0, NOON) == []


async def test_jobs_take_turns_within_one_claim(store: Store) -> None:
    jobs = [await submit(store, trials=count) for count in (10, 10, 1)]
    claimed = await store.trials.claim("w", MINUTE, 7, NOON)
    assert [trial.job_id for trial in claimed] == [jobs[i].id for i in (0, 1, 2, 0, 1, 0, 1)]


async def test_jobs_take_turns_over_many_small_claims(store: Store) -> None:
    jobs = [await submit(store, trials=4) for _ in range(3)]
    served = [(await store.trials.claim("w", MINUTE, 1, NOON))[0].job_id for _ in range(6)]
    assert served == [job.id for job in jobs] * 2
    claimed = await store.trials.claim("w", MINUTE, 2, NOON)
    assert [trial.job_id for trial in claimed] == [jobs[0].id, jobs[1].id]
    assert (await store.trials.claim("w", MINUTE, 1, NOON))[0].job_id == jobs[2].id


async def test_a_job_alone_gets_everything(store: Store) -> None:
    await submit(store, trials=3)
    other = await submit(store, trials=3)
    claimed = await store.trials.claim("w", MINUTE, 10, NOON, job_id=other.id)
    assert [trial.job_id for trial in claimed] == [other.id] * 3
    assert await store.trials.claim("w", MINUTE, 10, NOON, job_id=99) == []


async def test_a_jobs_concurrency_holds_over_all_workers(store: Store) -> None:
    limited, free = await submit(store, trials=9, concurrency=2), await submit(store, trials=4)
    claimed = await store.trials.claim("w1", MINUTE, 6, NOON)
    assert Counter(trial.job_id for trial in claimed) == {limited.id: 2, free.id: 4}
    assert await store.trials.claim("w2", MINUTE, 6, NOON) == []
    done = next(trial for trial in claimed if trial.job_id == limited.id)
    await store.trials.finish(done.id, 1, passed(), NOON)
    assert len(await store.trials.claim("w2", MINUTE, 6, NOON)) == 1


async def test_a_trial_waits_for_its_time(store: Store) -> None:
    job = await submit(store, trials=2)
    first, second = await store.trials.claim("w", MINUTE, 2, NOON)
    await store.trials.try_again(first.id, 1, faulty(), 2 * MINUTE, NOON)
    await store.trials.try_again(second.id, 1, faulty(), 0 * MINUTE, NOON)
    [ready] = await store.trials.claim("w", MINUTE, 5, NOON + MINUTE)
    assert ready.id == second.id
    assert await store.trials.claim("w", MINUTE, 5, NOON + 1.9 * MINUTE) == []
    [late] = await store.trials.claim("w", MINUTE, 5, NOON + 2 * MINUTE)
    assert (late.id, late.try_number, late.not_before) == (first.id, 2, None)
    assert (await kinds(store, job.id)).count("trial.claimed") == 4


async def test_twenty_claimers_at_once_never_get_the_same_trial(open_store: StoreOpener) -> None:
    stores = [await open_store() for _ in range(4)]
    await submit(stores[0], trials=200)

    async def claim_all(number: int) -> list[int]:
        mine: list[int] = []
        store = stores[number % len(stores)]
        while batch := await store.trials.claim(f"w{number}", MINUTE, 3, NOON):
            mine += [trial.id for trial in batch]
        return mine

    claimed = [trial_id for mine in await asyncio.gather(*map(claim_all, range(20))) for trial_id in mine]
    # Rows that another claim holds at that moment are passed over, so a last look finds what is left.
    claimed += [trial.id for trial in await stores[0].trials.claim("last", MINUTE, 500, NOON)]
    assert len(claimed) == len(set(claimed)) == 200
    attempts = [await stores[0].trials.tries(trial_id) for trial_id in claimed]
    assert all([a_try.number for a_try in mine] == [1] for mine in attempts)


async def test_concurrency_holds_when_claims_and_ends_race(open_store: StoreOpener) -> None:
    stores = [await open_store() for _ in range(3)]
    job = await submit(stores[0], trials=60, concurrency=4)

    async def work(number: int) -> None:
        store = stores[number % len(stores)]
        while (await store.jobs.get(job.id)).ended_at is None:
            claimed = await store.trials.claim(f"w{number}", MINUTE, 2, NOON)
            await asyncio.sleep(0.002)
            for trial in claimed:
                await store.trials.finish(trial.id, trial.try_number, passed(), NOON)

    await asyncio.gather(*map(work, range(6)))
    assert (await stores[0].jobs.counts([job.id]))[job.id].passed == 60
    steps = {"trial.claimed": 1, "trial.ended": -1}
    told = await kinds(stores[0], job.id)  # in the order of their commits
    assert max(accumulate(steps.get(kind, 0) for kind in told)) == 4
    assert told.count("job.ended") == 1 and told[-1] == "job.ended"


async def test_a_job_ends_once_when_its_last_trials_end_together(open_store: StoreOpener) -> None:
    stores = [await open_store() for _ in range(4)]
    for _ in range(10):
        job = await submit(stores[0], trials=4)
        claimed = await stores[0].trials.claim("w", MINUTE, 4, NOON)
        ends = (store.trials.finish(trial.id, 1, passed(), NOON) for store, trial in zip(stores, claimed, strict=True))
        await asyncio.gather(*ends)
        assert (await kinds(stores[0], job.id)).count("job.ended") == 1
