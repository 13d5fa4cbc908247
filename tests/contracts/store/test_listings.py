"""Looking at many trials."""

from __future__ import annotations

from seatrial.domain.result import Spent
from seatrial.domain.trial import Mark, Outcome, TrialState
from seatrial.ports.store import Page, Store, TrialFilter, TrialSummary
from tests.contracts.store.samples import MINUTE, NOON, all_trials, faulty, passed, submit


async def test_trials_stream_in_order_over_many_chunks(store: Store) -> None:
    job = await submit(store, trials=450)
    await submit(store, trials=3)
    ids = [row.trial.id for row in await all_trials(store, job.id)]
    assert len(ids) == 450 and ids == sorted(ids)
    assert len(await all_trials(store)) == 453


async def test_trials_are_chosen_by_job_state_outcome_and_task(store: Store) -> None:
    one, two = await submit(store, trials=4), await submit(store, trials=2, task="other")
    a, b, c = await store.trials.claim("w", MINUTE, 3, NOON, job_id=one.id)
    await store.trials.finish(a.id, 1, passed(), NOON)
    await store.trials.finish(b.id, 1, faulty(), NOON)

    async def chosen(chosen: TrialFilter) -> list[int]:
        streamed = [row.trial.id async for row in store.trials.each(chosen)]
        listed = [row.trial.id for row in await store.trials.summaries(chosen, Page())]
        assert listed == streamed[::-1]
        return streamed

    everything = await chosen(TrialFilter())
    assert len(everything) == 6
    assert await chosen(TrialFilter(job_id=two.id)) == everything[4:]
    assert await chosen(TrialFilter(task="other")) == everything[4:]
    assert await chosen(TrialFilter(states=(TrialState.RUNNING,))) == [c.id]
    assert await chosen(TrialFilter(states=(TrialState.RUNNING, TrialState.ENDED))) == [a.id, b.id, c.id]
    assert await chosen(TrialFilter(outcomes=(Outcome.PASSED, Outcome.ERROR))) == [a.id, b.id]
    assert await chosen(TrialFilter(job_id=two.id, outcomes=(Outcome.PASSED,))) == []
    assert await chosen(TrialFilter(task="nothing")) == []


async def test_summaries_have_the_numbers_of_the_last_result(store: Store) -> None:
    await submit(store, trials=2)
    trial, untouched = await store.trials.claim("w", MINUTE, 2, NOON)
    ended = await store.trials.finish(trial.id, 1, passed(), NOON)
    newest, oldest = await store.trials.summaries(TrialFilter(), Page())
    assert newest == TrialSummary(trial=untouched)
    assert oldest == TrialSummary(
        trial=ended,
        reward=1.0,
        marks=(Mark.AGENT_TIMEOUT, Mark.OVER_BUDGET),
        seconds=2.5,
        input_tokens=1200,
        output_tokens=34,
        cost_usd=0.0125,
        spent=Spent(seconds=2.5, input_tokens=1200, output_tokens=34, cost_usd=0.0125),
    )


async def test_summaries_come_in_pages(store: Store) -> None:
    await submit(store, trials=5)
    first = await store.trials.summaries(TrialFilter(), Page(limit=3))
    rest = await store.trials.summaries(TrialFilter(), Page(limit=3, before=first[-1].trial.id))
    ids = [row.trial.id for row in first + rest]
    assert [len(first), len(rest)] == [3, 2] and ids == sorted(ids, reverse=True)
