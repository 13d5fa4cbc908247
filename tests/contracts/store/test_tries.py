"""Leases, results and the attempt number that every write carries."""

from __future__ import annotations

from datetime import timedelta

import pytest

from seatrial.domain.trial import Cause, Outcome, Phase, TrialState
from seatrial.errors import NotFound, StaleTry
from seatrial.ports.store import PhaseEntry, Store
from tests.contracts.store.samples import MINUTE, NOON, all_trials, cancelled, faulty, kinds, passed, submit


def entered(trial_id: int, try_number: int, phase: Phase, step: str | None = None) -> PhaseEntry:
    return PhaseEntry(trial_id=trial_id, job_id=1, try_number=try_number, phase=phase, at=NOON, step=step)


async def test_a_result_is_recorded_once(store: Store) -> None:
    await submit(store)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON)
    ended = await store.trials.finish(trial.id, 1, passed(), NOON + MINUTE)
    assert (ended.state, ended.outcome, ended.ended_at) == (TrialState.ENDED, Outcome.PASSED, NOON + MINUTE)
    with pytest.raises(StaleTry):
        await store.trials.finish(trial.id, 1, faulty(), NOON + MINUTE)
    row = await store.trials.get(trial.id)
    assert row.trial == ended and row.result == passed()
    [a_try] = await store.trials.tries(trial.id)
    assert a_try.model_dump() == {
        "trial_id": trial.id,
        "number": 1,
        "worker": "w",
        "started_at": NOON,
        "ended_at": NOON + MINUTE,
        "result": passed().model_dump(),
    }
    assert await kinds(store, trial_id=trial.id) == ["trial.claimed", "trial.ended"]


async def test_a_history_has_the_trial_its_agent_and_every_try(store: Store) -> None:
    job = await submit(store)
    (waiting,) = [row.trial for row in await all_trials(store)]
    untouched = await store.trials.history(waiting.id)
    assert (untouched.trial, untouched.agent) == (waiting, job.spec.agents[0])
    assert (untouched.tries, untouched.result) == ((), None)
    [first] = await store.trials.claim("slow", MINUTE, 1, NOON)
    await store.trials.try_again(first.id, 1, faulty(), timedelta(0), NOON + MINUTE)
    [second] = await store.trials.claim("quick", MINUTE, 1, NOON + MINUTE)
    under_way = await store.trials.history(first.id)
    assert (under_way.trial, under_way.result) == (second, faulty())
    assert [(each.number, each.worker, each.result) for each in under_way.tries] == [
        (1, "slow", faulty()),
        (2, "quick", None),
    ]
    ended = await store.trials.finish(first.id, 2, passed(), NOON + 2 * MINUTE)
    whole = await store.trials.history(first.id)
    row = await store.trials.get(first.id)
    assert (whole.trial, whole.result) == (ended, passed()) == (row.trial, row.result)
    assert list(whole.tries) == await store.trials.tries(first.id)


async def test_an_error_keeps_its_cause(store: Store) -> None:
    await submit(store)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON)
    await store.trials.finish(trial.id, 1, faulty(Cause.IMAGE), NOON)
    assert (await store.trials.get(trial.id)).trial.cause is Cause.IMAGE
    ended = (await store.events.read(trial_id=trial.id))[-1]
    assert ended.data["outcome"] == "error" and ended.data["cause"] == "image"


async def test_a_worker_that_was_presumed_dead_cannot_overwrite_its_successor(store: Store) -> None:
    await submit(store)
    [first] = await store.trials.claim("slow", MINUTE, 1, NOON)
    await store.trials.try_again(first.id, 1, faulty(Cause.WORKER_LOST), timedelta(0), NOON + MINUTE)
    [second] = await store.trials.claim("quick", MINUTE, 1, NOON + MINUTE)
    assert (second.id, second.try_number) == (first.id, 2)
    for write in (
        lambda: store.trials.finish(first.id, 1, passed(), NOON),
        lambda: store.trials.try_again(first.id, 1, faulty(), MINUTE, NOON),
        lambda: store.trials.give_back(first.id, 1, NOON),
    ):
        with pytest.raises(StaleTry):
            await write()
    await store.trials.enter_phases([entered(first.id, 1, Phase.VERIFY)])
    assert (await store.trials.get(first.id)).trial == second
    await store.trials.finish(second.id, 2, passed(), NOON + 2 * MINUTE)
    assert [a.result for a in await store.trials.tries(first.id)] == [faulty(Cause.WORKER_LOST), passed()]


async def test_trying_again_keeps_the_result_and_waits(store: Store) -> None:
    await submit(store)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON)
    queued = await store.trials.try_again(trial.id, 1, faulty(), MINUTE, NOON)
    assert (queued.state, queued.not_before, queued.worker) == (TrialState.QUEUED, NOON + MINUTE, None)
    row = await store.trials.get(trial.id)
    assert row.trial == queued and row.result == faulty()
    event = (await store.events.read(trial_id=trial.id))[-1]
    assert event.kind.value == "trial.retry" and event.data["cause"] == "sandbox"


async def test_trying_a_cancelled_trial_again_ends_it_and_its_job(store: Store) -> None:
    job = await submit(store)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON)
    await store.jobs.cancel(job.id, NOON)
    ended = await store.trials.try_again(trial.id, 1, faulty(), MINUTE, NOON)
    assert (ended.state, ended.outcome) == (TrialState.ENDED, Outcome.CANCELLED)
    assert (await kinds(store))[-2:] == ["trial.ended", "job.ended"]
    assert await store.trials.claim("w", MINUTE, 1, NOON + 9 * MINUTE) == []


async def test_a_trial_given_back_does_not_lose_an_attempt(store: Store) -> None:
    await submit(store)
    [trial] = await store.trials.claim("leaving", MINUTE, 1, NOON)
    queued = await store.trials.give_back(trial.id, 1, NOON)
    assert queued.state is TrialState.QUEUED and queued.tries_made == 0
    [again] = await store.trials.claim("staying", MINUTE, 1, NOON)
    assert again.try_number == 2 and again.tries_made == 1
    first, _ = await store.trials.tries(trial.id)
    assert first.ended_at == NOON and first.result is None
    assert (await store.trials.get(trial.id)).result is None


async def test_a_cancelled_trial_given_back_has_ended(store: Store) -> None:
    job = await submit(store)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON)
    await store.jobs.cancel(job.id, NOON)
    assert (await store.trials.give_back(trial.id, 1, NOON)).outcome is Outcome.CANCELLED
    assert (await store.jobs.get(job.id)).ended_at == NOON


async def test_phases_are_noted_in_order_and_stale_ones_dropped(store: Store) -> None:
    await submit(store, trials=2)
    one, two = await store.trials.claim("w", MINUTE, 2, NOON)
    await store.trials.enter_phases(
        [
            entered(one.id, 1, Phase.BUILD),
            entered(two.id, 2, Phase.AGENT),
            entered(one.id, 1, Phase.AGENT, step="second"),
            entered(99, 1, Phase.AGENT),
        ]
    )
    assert (await store.trials.get(one.id)).trial.phase is Phase.AGENT
    assert (await store.trials.get(two.id)).trial.phase is Phase.PREPARING
    told = [event.data for event in await store.events.read() if event.kind.value == "trial.phase"]
    assert told == [{"phase": "build"}, {"phase": "agent", "step": "second"}]
    await store.trials.finish(one.id, 1, passed(), NOON)
    await store.trials.enter_phases([entered(one.id, 1, Phase.VERIFY)])
    await store.trials.enter_phases([])
    assert (await store.trials.get(one.id)).trial.phase is None


async def test_a_renewed_lease_does_not_run_out(store: Store) -> None:
    await submit(store, trials=2)
    kept, lost = await store.trials.claim("w", MINUTE, 2, NOON)
    report = await store.trials.renew("w", {kept.id: 1}, 5 * MINUTE, NOON + MINUTE)
    assert report.lost == frozenset() and report.cancel == frozenset()
    assert await store.trials.expired(NOON + MINUTE) == []
    [expired] = await store.trials.expired(NOON + 2 * MINUTE)
    assert expired == (await store.trials.get(lost.id)).trial
    assert (await store.trials.get(kept.id)).trial.lease_until == NOON + 6 * MINUTE
    both = await store.trials.expired(NOON + 9 * MINUTE)
    assert [trial.id for trial in both] == [lost.id, kept.id]
    assert len(await store.trials.expired(NOON + 9 * MINUTE, limit=1)) == 1


async def test_renewing_tells_what_was_lost_and_what_to_cancel(store: Store) -> None:
    doomed, other = await submit(store), await submit(store, trials=3)
    claimed = await store.trials.claim("w", MINUTE, 4, NOON)
    by_job = {trial.job_id: trial for trial in claimed}
    stale, ended, foreign = [trial for trial in claimed if trial.job_id == other.id]
    await store.jobs.cancel(doomed.id, NOON)
    await store.trials.try_again(stale.id, 1, faulty(), timedelta(0), NOON)
    await store.trials.claim("w", MINUTE, 1, NOON)
    await store.trials.finish(ended.id, 1, passed(), NOON)
    held = {trial.id: 1 for trial in claimed if trial is not foreign} | {99: 1}
    report = await store.trials.renew("w", held, MINUTE, NOON)
    assert report.lost == {stale.id, ended.id, 99}
    assert report.cancel == {by_job[doomed.id].id}
    assert (await store.trials.renew("someone else", {foreign.id: 1}, MINUTE, NOON)).lost == {foreign.id}


async def test_a_cancelled_trial_ends_by_its_worker(store: Store) -> None:
    job = await submit(store)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON)
    await store.jobs.cancel(job.id, NOON)
    await store.trials.finish(trial.id, 1, cancelled(), NOON)
    assert (await store.trials.get(trial.id)).trial.outcome is Outcome.CANCELLED
    assert (await kinds(store)).count("job.ended") == 1


async def test_unknown_trials_are_not_found(store: Store) -> None:
    for call in (
        lambda: store.trials.get(99),
        lambda: store.trials.tries(99),
        lambda: store.trials.history(99),
        lambda: store.trials.finish(99, 1, passed(), NOON),
        lambda: store.trials.try_again(99, 1, faulty(), MINUTE, NOON),
        lambda: store.trials.give_back(99, 1, NOON),
    ):
        with pytest.raises(NotFound):
            await call()
    await submit(store)
    [row] = await all_trials(store)
    assert await store.trials.tries(row.trial.id) == []


async def test_a_trial_that_is_due_is_known_however_many_wait(store: Store) -> None:
    assert not await store.trials.is_due_since(NOON + 9 * MINUTE)
    await submit(store, trials=2)
    assert await store.trials.is_due_since(NOON)
    assert not await store.trials.is_due_since(NOON - MINUTE), "they did not exist then"
    one, two = await store.trials.claim("w", MINUTE, 2, NOON)
    assert not await store.trials.is_due_since(NOON + MINUTE), "what runs does not wait"
    await store.trials.try_again(one.id, 1, faulty(), 5 * MINUTE, NOON)
    assert not await store.trials.is_due_since(NOON + MINUTE), "it is due later"
    assert await store.trials.is_due_since(NOON + 5 * MINUTE)
    await store.trials.finish(two.id, 1, passed(), NOON)
