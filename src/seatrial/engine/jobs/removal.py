"""Forgetting a job with everything that it left."""

from __future__ import annotations

import asyncio
from itertools import batched

from seatrial.engine.reports.summaries import summaries_of
from seatrial.engine.trials.trial_files import trial_prefix
from seatrial.ports.blobs import Blobs
from seatrial.ports.store import Store

_AT_ONCE = 16


async def remove_job(store: Store, blobs: Blobs, job_id: int) -> None:
    """The store first: files that nobody knows of do less harm than results whose files are gone."""
    await store.job(job_id)
    trial_ids = [summary.trial.id async for summary in summaries_of(store, job_id)]
    await store.delete_job(job_id)
    for some in batched(trial_ids, _AT_ONCE):
        await asyncio.gather(*(blobs.delete(trial_prefix(trial_id)) for trial_id in some))
