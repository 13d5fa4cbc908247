"""Tries that end at the same time: each is judged by itself, whatever happens to the others."""

from __future__ import annotations

import asyncio

from seatrial.domain.trial import Cause, Outcome, Trial, TrialState
from seatrial.errors import NotFound, StaleTry
from seatrial.ports.store import Store
from tests.contracts.store.samples import MINUTE, NOON, all_trials, faulty, kinds, passed, submit


async def test_every_trial_gets_its_own_result_and_each_job_ends_once(store: Store) -> None:
    first, second = await submit(store, 12), await submit(store, 8)
    claimed = await store.trials.claim("w", MINUTE, 20, NOON)
    results = {trial.id: passed(trial.id / 100) for trial in claimed}
    ended = await asyncio.gather(*(store.trials.finish(t.id, 1, results[t.id], NOON + MINUTE) for t in claimed))
    assert [trial.id for trial in ended] == [trial.id for trial in claimed]
    assert {row.trial.id: row.result for row in await all_trials(store)} == results
    for job, trials in ((first, 12), (second, 8)):
        assert (await store.jobs.get(job.id)).ended_at == NOON + MINUTE
        log = await kinds(store, job_id=job.id)
        assert (log.count("trial.ended"), log.count("job.ended"), log[-1]) == (trials, 1, "job.ended")


async def test_one_that_is_refused_keeps_nobody_from_ending(store: Store) -> None:
    await submit(store, 4)
    one, two, three, four = await store.trials.claim("w", MINUTE, 4, NOON)
    await store.trials.finish(one.id, 1, passed(), NOON)
    late, unknown, ended, back, again = await asyncio.gather(
        store.trials.finish(one.id, 1, faulty(), NOON),
        store.trials.finish(12345, 1, passed(), NOON),
        store.trials.finish(two.id, 1, passed(), NOON),
        store.trials.give_back(three.id, 1, NOON),
        store.trials.try_again(four.id, 1, faulty(Cause.IMAGE), MINUTE, NOON),
        return_exceptions=True,
    )
    assert isinstance(late, StaleTry) and isinstance(unknown, NotFound)
    assert isinstance(ended, Trial) and ended.outcome is Outcome.PASSED
    assert isinstance(back, Trial) and isinstance(again, Trial)
    assert back.state is again.state is TrialState.QUEUED
    assert [row.trial for row in await all_trials(store)][1:] == [ended, back, again]


async def test_of_two_results_for_one_try_one_is_recorded(store: Store) -> None:
    await submit(store)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON)
    writes = (store.trials.finish(trial.id, 1, passed(reward), NOON) for reward in (1.0, 0.5))
    found = await asyncio.gather(*writes, return_exceptions=True)
    assert sorted(type(one) is StaleTry for one in found) == [False, True]
    assert await kinds(store, trial_id=trial.id) == ["trial.claimed", "trial.ended"]


async def test_a_caller_that_leaves_takes_nobody_along(store: Store) -> None:
    await submit(store, 3)
    claimed = await store.trials.claim("w", MINUTE, 3, NOON)
    writes = [asyncio.create_task(store.trials.finish(trial.id, 1, passed(), NOON)) for trial in claimed]
    await asyncio.sleep(0)
    writes[1].cancel()
    found = await asyncio.gather(*writes, return_exceptions=True)
    assert isinstance(found[0], Trial) and isinstance(found[2], Trial)
    assert (await store.trials.get(claimed[0].id)).trial.state is TrialState.ENDED
    assert (await store.trials.get(claimed[2].id)).trial.state is TrialState.ENDED
