"""Waits for a trial or job to end, for callers that want the answer in the same request."""

from __future__ import annotations

import asyncio

from seatrial.domain.trial import TrialState
from seatrial.ports.store import JobStore, TrialRow, TrialStore

_FIRST_LOOK_SEC = 0.1
_LOOK_SEC = 1.0


async def until_trial_ended(trials: TrialStore, trial_id: int) -> TrialRow:
    """Asks the store often at first, then once a second."""
    pause = _FIRST_LOOK_SEC
    while (row := await trials.trial(trial_id)).trial.state is not TrialState.ENDED:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LOOK_SEC)
    return row


async def until_job_ended(jobs: JobStore, job_id: int, seconds: float) -> bool:
    """Whether it ended within that time."""
    deadline = asyncio.get_running_loop().time() + seconds
    while (await jobs.job(job_id)).ended_at is None:
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(_FIRST_LOOK_SEC)
    return True
