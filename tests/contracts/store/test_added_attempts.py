"""A graded trial is final: running it again adds an attempt. The cost of every try counts."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.domain.job import JobCounts, StateCounts
from seatrial.domain.result import Result, Spent, Usage
from seatrial.domain.trial import Cause, Outcome, TrialState
from seatrial.errors import NotFound
from seatrial.ports.store import JobFilter, Page, Store, TrialFilter
from tests.contracts.store.samples import MINUTE, NOON, all_trials, faulty, kinds, passed, submit

FAILED = Result(outcome=Outcome.FAILED, rewards={"reward": 0.0}, seconds=3.0)


async def graded(store: Store, result: Result = FAILED) -> int:
    job = await submit(store)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON, job_id=job.id)
    await store.trials.finish(trial.id, 1, result, NOON)
    return trial.id


@pytest.mark.parametrize("result", [FAILED, passed()], ids=["failed", "passed"])
async def test_a_graded_trial_is_not_retried(store: Store, result: Result) -> None:
    trial_id = await graded(store, result)
    before = await store.trials.get(trial_id)
    assert await store.jobs.retry_trials([trial_id], NOON + MINUTE) == 0
    assert await store.trials.get(trial_id) == before
    assert (await store.jobs.get(before.trial.job_id)).ended_at == NOON


async def test_an_added_attempt_is_a_trial_of_its_own(store: Store) -> None:
    trial_id = await graded(store)
    [added_id] = await store.jobs.add_attempts([trial_id, trial_id], NOON + MINUTE)
    added, first = (await store.trials.get(added_id)).trial, (await store.trials.get(trial_id)).trial
    assert (added.attempt, added.reruns, added.state, added.try_number) == (2, trial_id, TrialState.QUEUED, 0)
    assert (added.task, added.agent_index, added.job_id) == (first.task, first.agent_index, first.job_id)
    assert (first.outcome, first.reruns) == (Outcome.FAILED, None)
    job = await store.jobs.get(first.job_id)
    assert (job.ended_at, job.cancelled_at) == (None, None)
    assert (await kinds(store, job.id))[-1] == "trial.added"
    [claimed] = await store.trials.claim("w", MINUTE, 5, NOON)
    await store.trials.finish(claimed.id, 1, passed(), NOON + MINUTE)
    assert (claimed.id, (await store.jobs.get(job.id)).ended_at) == (added_id, NOON + MINUTE)


async def test_added_attempts_are_counted_apart_and_never_tallied(store: Store) -> None:
    trial_id = await graded(store)
    job_id = (await store.trials.get(trial_id)).trial.job_id
    before = await store.jobs.tallies([job_id])
    await store.jobs.add_attempts([trial_id], NOON)
    waiting = JobCounts(failed=1, added=StateCounts(queued=1))
    assert await store.jobs.counts([job_id]) == {job_id: waiting}
    assert [job.id for job in await store.jobs.page(Page(), JobFilter(status=waiting.status))] == [job_id]
    [claimed] = await store.trials.claim("w", MINUTE, 1, NOON)
    await store.trials.finish(claimed.id, 1, passed(), NOON)
    done = JobCounts(failed=1, added=StateCounts(passed=1))
    found = (await store.jobs.numbers([job_id]))[job_id]
    assert (found.counts, found.totals.seconds, found.totals.input_tokens) == (done, 5.5, 1200)
    assert await store.jobs.tallies([job_id]) == before
    assert [job.id for job in await store.jobs.page(Page(), JobFilter(status=done.status))] == [job_id]


async def test_attempts_are_numbered_on_and_name_the_planned_trial(store: Store) -> None:
    trial_id = await graded(store)
    [second] = await store.jobs.add_attempts([trial_id], NOON, hold=True)
    assert (await store.trials.get(second)).trial.state is TrialState.HELD
    await store.jobs.release_trials([second], NOON)
    [claimed] = await store.trials.claim("w", MINUTE, 1, NOON)
    await store.trials.finish(claimed.id, 1, FAILED, NOON)
    both = await asyncio.gather(*(store.jobs.add_attempts([each], NOON) for each in (trial_id, second)))
    rows = await all_trials(store, claimed.job_id)
    assert [row.trial.attempt for row in rows] == [1, 2, 3, 4]
    assert {row.trial.reruns for row in rows[1:]} == {trial_id}
    assert sorted(number for numbers in both for number in numbers) == [row.trial.id for row in rows[2:]]


async def test_nothing_is_added_for_trials_without_a_grade(store: Store) -> None:
    trial_id = await graded(store, faulty())
    await submit(store)
    ids = [row.trial.id for row in await all_trials(store)]
    assert trial_id in ids and await store.jobs.add_attempts(ids, NOON) == []
    with pytest.raises(NotFound):
        await store.jobs.add_attempts([99], NOON)


async def test_the_cost_of_every_try_counts(store: Store) -> None:
    job = await submit(store)
    broken = Result(
        outcome=Outcome.ERROR,
        cause=Cause.LLM,
        seconds=4.0,
        usage=Usage(input_tokens=100, cached_tokens=60, cost_usd=0.5),
    )
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON)
    await store.trials.finish(trial.id, 1, broken, NOON)
    await store.jobs.retry_trials([trial.id], NOON)
    only = TrialFilter(job_id=job.id)
    [waiting] = await store.trials.summaries(only, Page())
    first = Spent(seconds=4.0, input_tokens=100, cached_tokens=60, cost_usd=0.5)
    assert waiting.spent == first == (await store.trials.history(trial.id)).spent
    [again] = await store.trials.claim("w", MINUTE, 1, NOON)
    await store.trials.finish(again.id, again.try_number, passed(), NOON)
    [ended] = await store.trials.summaries(only, Page())
    both = Spent(seconds=6.5, input_tokens=1300, cached_tokens=60, output_tokens=34, cost_usd=0.5125)
    assert (ended.spent, ended.cost_usd, ended.seconds) == (both, 0.0125, 2.5)
    assert (await store.trials.history(trial.id)).spent == both
    totals = (await store.jobs.numbers([job.id]))[job.id].totals
    assert (totals.seconds, totals.input_tokens, totals.cost_usd) == (6.5, 1300, 0.5125)
