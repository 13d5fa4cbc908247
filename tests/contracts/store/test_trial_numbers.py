"""What reports read of a job's trials."""

from __future__ import annotations

from seatrial.domain.result import Spent, Usage
from seatrial.domain.trial import Cause, Mark, Outcome
from seatrial.ports.store import Store, TrialNumbers
from tests.contracts.store.samples import MINUTE, NOON, faulty, passed, submit


async def test_the_numbers_of_every_trial_of_a_job(store: Store) -> None:
    job = await submit(store, trials=3)
    await submit(store)
    first, second = await store.trials.claim("w", MINUTE, 2, NOON, job_id=job.id)
    await store.trials.finish(first.id, 1, passed(), NOON)
    await store.trials.finish(second.id, 1, faulty(Cause.LLM), NOON)
    [added] = await store.jobs.add_attempts([first.id], NOON)
    one, two, three, four = await store.trials.numbers(job.id)
    spent = Spent(seconds=2.5, input_tokens=1200, output_tokens=34, cost_usd=0.0125)
    marks = (Mark.AGENT_TIMEOUT, Mark.OVER_BUDGET)
    assert one == TrialNumbers(first.id, first.task, 0, 1, False, 1, Outcome.PASSED, None, 1.0, marks, 2.5, spent)
    assert (two.outcome, two.cause, two.reward, two.marks, two.spent) == (
        Outcome.ERROR, Cause.LLM, None, (), Spent(seconds=1.0)
    )  # fmt: skip
    assert (three.outcome, three.seconds, three.tries, three.spent) == (None, None, 0, Spent())
    assert (four.trial_id, four.added, four.attempt, four.task) == (added, True, 2, first.task)
    assert await store.trials.numbers(999) == []


async def test_estimates_do_not_learn_from_replayed_trials(store: Store) -> None:
    """They cost nothing, and wait for no model."""
    job = await submit(store, trials=2)
    first, second = await store.trials.claim("w", MINUTE, 2, NOON, job_id=job.id)
    await store.trials.finish(first.id, 1, passed(), NOON)
    replayed = passed().model_copy(update={"marks": (Mark.REPLAYED,), "usage": Usage(cost_usd=0.0), "seconds": 0.1})
    await store.trials.finish(second.id, 1, replayed, NOON)
    [found] = await store.totals.experience(["hello"])
    assert (found.trials, found.seconds, found.cost_usd) == (1, 2.5, 0.0125)
