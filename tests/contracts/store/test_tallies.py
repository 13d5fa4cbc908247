"""How a job's trials stand: task by task, and summed up."""

from __future__ import annotations

from seatrial.domain.frozen import common_values
from seatrial.domain.job import JobCounts
from seatrial.domain.result import Usage
from seatrial.domain.trial import Cause, Mark, Outcome
from seatrial.ports.store import ConfigurationTotals, JobNumbers, JobTotals, Store, Tally
from tests.contracts.store.samples import MINUTE, NOON, faulty, passed, submit


async def test_tallies_count_every_trial_once(store: Store) -> None:
    job, other = await submit(store, trials=3), await submit(store, trials=1)
    first, second = await store.trials.claim("w", MINUTE, 2, NOON, job_id=job.id)
    await store.trials.finish(first.id, 1, passed(), NOON)
    await store.trials.finish(second.id, 1, faulty(Cause.LLM), NOON)
    found = await store.jobs.tallies([job.id, other.id, 999])
    digests = [trial.task.digest for trial in (first, second)]
    assert sorted(found[job.id], key=lambda tally: tally.digest) == [
        Tally(digest=digests[0], outcome=Outcome.PASSED, trials=1),
        Tally(digest=digests[1], outcome=Outcome.ERROR, cause=Cause.LLM, trials=1),
        Tally(digest=f"sha256:{2:064x}", trials=1),
    ]
    assert [tally.trials for tally in found[other.id]] == [1]
    assert found[999] == []


async def test_numbers_count_and_sum_what_stands_in_every_way(store: Store) -> None:
    job, untouched = await submit(store, trials=6), await submit(store, trials=2)
    trials = await store.trials.claim("w", MINUTE, 5, NOON, job_id=job.id)
    await store.trials.finish(trials[0].id, 1, passed(), NOON)
    await store.trials.finish(trials[1].id, 1, passed(), NOON)
    await store.trials.finish(trials[2].id, 1, faulty(), NOON)
    found = await store.jobs.numbers([job.id, untouched.id, 999])
    assert found[job.id] == JobNumbers(
        counts=JobCounts(queued=1, running=2, passed=2, error=1),
        totals=JobTotals(seconds=6.0, input_tokens=2400, output_tokens=68, cost_usd=0.025, started_at=NOON),
    )
    assert found[untouched.id] == JobNumbers(counts=JobCounts(queued=2), totals=JobTotals())
    assert found[999] == JobNumbers(counts=JobCounts(), totals=JobTotals())


async def test_spent_tallies_add_up_time_tokens_and_cost(store: Store) -> None:
    job = await submit(store, trials=3)
    first, second = await store.trials.claim("w", MINUTE, 2, NOON, job_id=job.id)
    await store.trials.finish(first.id, 1, passed(), NOON)
    await store.trials.finish(
        second.id, 1, faulty(Cause.LLM).model_copy(update={"usage": Usage(output_tokens=5)}), NOON
    )
    numbers = {each.trial_id: each for each in await store.trials.numbers(job.id)}
    found = {tally.digest: tally for tally in (await store.jobs.spent_tallies([job.id, 999]))[job.id]}
    plain = {tally.digest: tally for tally in (await store.jobs.tallies([job.id]))[job.id]}
    assert {digest: Tally(**common_values(Tally, tally)) for digest, tally in found.items()} == plain
    one, other = found[first.task.digest], found[second.task.digest]
    spent = numbers[first.id].spent
    assert (one.timed, one.seconds) == (1, numbers[first.id].seconds)
    assert (one.metered, one.tokens) == (1, (spent.input_tokens or 0) + (spent.output_tokens or 0))
    assert (one.priced, one.cost_usd) == (1, spent.cost_usd)
    assert (other.metered, other.tokens, other.priced, other.cost_usd) == (1, 5, 0, 0.0)
    untouched = found[f"sha256:{2:064x}"]
    assert (untouched.timed, untouched.metered, untouched.priced) == (0, 0, 0)


async def test_configurations_are_summed_without_added_attempts(store: Store) -> None:
    job, untouched = await submit(store, trials=3), await submit(store, trials=1)
    first, second, third = await store.trials.claim("w", MINUTE, 3, NOON, job_id=job.id)
    unlimited = passed().model_copy(update={"marks": (Mark.AGENT_TIMEOUT, Mark.LIMITS_NOT_ENFORCED)})
    await store.trials.finish(first.id, 1, unlimited, NOON)
    await store.trials.finish(second.id, 1, passed(), NOON)
    await store.trials.finish(third.id, 1, faulty(), NOON)
    await store.jobs.add_attempts([first.id], NOON)
    [added] = await store.trials.claim("w", MINUTE, 1, NOON, job_id=job.id)
    await store.trials.finish(added.id, 1, unlimited, NOON)
    found = await store.jobs.configuration_totals([job.id, untouched.id, 999])
    assert found[job.id] == [ConfigurationTotals(cost_usd=0.025, priced=2, unlimited=1, added=1)]
    assert found[untouched.id] == [ConfigurationTotals()]
    assert found[999] == []
