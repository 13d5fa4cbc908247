"""Leases that ran out, and workers that cannot open a job's keys."""

from __future__ import annotations

from seatrial.domain.fleet.worker_death import Death
from seatrial.domain.trial import Cause, LeaseRenewed, Phase, TrialState, transition
from seatrial.ports.store import Loss, PhaseEntry, Store
from tests.contracts.store.conftest import StoreOpener
from tests.contracts.store.samples import MINUTE, NOON, faulty, passed, submit

LATE = NOON + 5 * MINUTE


async def test_a_lease_that_ran_out_is_renewed_while_nobody_took_the_trial(store: Store) -> None:
    await submit(store)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON)
    assert [late.id for late in await store.trials.expired(LATE)] == [trial.id]
    report = await store.trials.renew("w", {trial.id: 1}, MINUTE, LATE)
    assert report.lost == frozenset()
    assert await store.trials.expired(LATE) == []
    row = await store.trials.get(trial.id)
    assert (row.trial.state, row.trial.try_number, row.trial.lease_until) == (TrialState.RUNNING, 1, LATE + MINUTE)
    await store.trials.finish(trial.id, 1, passed(), LATE)


async def test_a_lease_is_not_renewed_once_the_trial_was_taken(store: Store) -> None:
    await submit(store)
    [trial] = await store.trials.claim("w1", MINUTE, 1, NOON)
    loss = Loss(trial_id=trial.id, try_number=1, result=faulty(Cause.WORKER_LOST), last=False)
    await store.trials.lose_worker("w1", [loss], Death.UNKNOWN, LATE)
    assert (await store.trials.renew("w1", {trial.id: 1}, MINUTE, LATE)).lost == {trial.id}, (
        "it waits for another worker"
    )
    [again] = await store.trials.claim("w2", MINUTE, 1, LATE)
    assert (await store.trials.renew("w1", {trial.id: 1}, MINUTE, LATE)).lost == {trial.id}, "another worker has it"
    assert (await store.trials.renew("w2", {again.id: 2}, MINUTE, LATE)).lost == frozenset()


async def test_jobs_with_sealed_keys_go_to_workers_that_can_open_them(open_store: StoreOpener) -> None:
    store = await open_store()
    theirs = await submit(store, keys="aaaaaaaaaaaa:sealed")
    older = await submit(store, keys="sealed-by-an-older-version")
    plain = await submit(store)
    claimed = await store.trials.claim("w", MINUTE, 9, NOON, seal="bbbbbbbbbbbb")
    assert {trial.job_id for trial in claimed} == {older.id, plain.id}
    assert await store.trials.claim("w", MINUTE, 9, NOON, seal="bbbbbbbbbbbb") == []
    assert [trial.job_id for trial in await store.trials.claim("v", MINUTE, 9, NOON, seal="aaaaaaaaaaaa")] == [
        theirs.id
    ]


async def test_a_caller_without_a_secret_key_takes_everything(store: Store) -> None:
    job = await submit(store, keys="aaaaaaaaaaaa:sealed")
    assert [trial.job_id for trial in await store.trials.claim("w", MINUTE, 9, NOON)] == [job.id]


async def test_the_store_tells_how_it_stands(store: Store) -> None:
    facts = await store.facts()
    assert (facts.now is not None) == (facts.kind == "postgresql")
    if facts.kind == "postgresql":
        assert facts.now is not None and facts.now.tzinfo is not None
        assert facts.connections and facts.connections_allowed and facts.connections_here
        assert facts.connections <= facts.connections_allowed and "connections in use" in facts.sentence
    else:
        assert facts.sentence == ""


async def test_a_renewal_is_what_the_transition_says(store: Store) -> None:
    await submit(store)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON)
    await store.trials.renew("w", {trial.id: 1}, MINUTE, LATE)
    assert (await store.trials.get(trial.id)).trial == transition(trial, LeaseRenewed(try_number=1, lease=MINUTE), LATE)


async def test_a_phase_changes_nothing_else(store: Store) -> None:
    await submit(store)
    [trial] = await store.trials.claim("w", MINUTE, 1, NOON)
    entry = PhaseEntry(trial_id=trial.id, job_id=trial.job_id, try_number=1, phase=Phase.AGENT, at=LATE)
    await store.trials.enter_phases([entry])
    said = transition(trial, LeaseRenewed(try_number=1, lease=MINUTE, phase=Phase.AGENT), NOON)
    assert (await store.trials.get(trial.id)).trial == said
