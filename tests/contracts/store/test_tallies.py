"""How a job's trials stand, task by task."""

from __future__ import annotations

from seatrial.domain.trial import Cause, Outcome
from seatrial.ports.store import Store, Tally
from tests.contracts.store.samples import MINUTE, NOON, faulty, passed, submit


async def test_tallies_count_every_trial_once(store: Store) -> None:
    job, other = await submit(store, trials=3), await submit(store, trials=1)
    first, second = await store.claim("w", MINUTE, 2, NOON, job_id=job.id)
    await store.finish(first.id, 1, passed(), NOON)
    await store.finish(second.id, 1, faulty(Cause.LLM), NOON)
    found = await store.tallies([job.id, other.id, 999])
    digests = [trial.task.digest for trial in (first, second)]
    assert sorted(found[job.id], key=lambda tally: tally.digest) == [
        Tally(digest=digests[0], outcome=Outcome.PASSED, trials=1),
        Tally(digest=digests[1], outcome=Outcome.ERROR, cause=Cause.LLM, trials=1),
        Tally(digest=f"sha256:{2:064x}", trials=1),
    ]
    assert [tally.trials for tally in found[other.id]] == [1]
    assert found[999] == []
