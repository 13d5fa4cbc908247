"""What is left of a job: what runs and waits, how long such trials took, what ended lately."""

from __future__ import annotations

from seatrial.domain.reports.progress import KnownDuration, RunningTrial, WorkLeft
from seatrial.ports.store import Store
from tests.contracts.store.samples import MINUTE, NOON, faulty, passed, submit


async def test_what_is_left_of_a_job(store: Store) -> None:
    job, other = await submit(store, trials=5), await submit(store, trials=2)
    trials = await store.trials.claim("w", MINUTE, 3, NOON, job_id=job.id)
    await store.trials.claim("w", MINUTE, 1, NOON - MINUTE, job_id=other.id)
    await store.trials.finish(trials[0].id, 1, passed(), NOON)
    await store.trials.finish(trials[1].id, 1, faulty(), NOON + 2 * MINUTE)
    digests = [f"sha256:{number:064x}" for number in range(5)]
    found = await store.jobs.work_left(job.id, NOON + MINUTE)
    assert found == WorkLeft(
        running=(RunningTrial(digest=digests[2], agent_index=0, started_at=NOON),),
        waiting={(digests[3], 0): 1, (digests[4], 0): 1},
        durations={(digests[0], 0): KnownDuration(trials=1, mean=2.5, longest=2.5)},
        recently_ended=1,
        first_started_at=NOON,
    )
    assert await store.jobs.work_left(999, NOON) == WorkLeft()
