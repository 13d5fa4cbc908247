"""The sandboxes of running trials, for the list of workers in the API."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.domain.sandbox_choice import chosen_sandbox
from seatrial.domain.trial import Trial
from seatrial.errors import NotFound
from seatrial.ports.store import Store


async def sandboxes_of(store: Store, running: Sequence[Trial]) -> list[str | None]:
    """The name of each sandbox; ``None`` if the worker has not reported yet which sandboxes work there."""
    if not running:
        return []
    working = {row.worker: row.sandboxes for row in await store.workers()}
    digests = list(dict.fromkeys(trial.task.digest for trial in running))
    try:
        wanted = {number: (await store.job(number)).spec.sandbox for number in {trial.job_id for trial in running}}
        tasks = dict(zip(digests, await store.tasks(digests), strict=True))
    except NotFound:  # ended and deleted since they were listed
        return [None] * len(running)
    return [
        chosen_sandbox(wanted[trial.job_id], tasks[trial.task.digest], working.get(trial.worker or "", ()))
        for trial in running
    ]
