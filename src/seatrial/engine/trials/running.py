"""Where trials run at this moment. Called by the API for whoever looks at the workers; changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.domain.sandbox_choice import chosen_sandbox
from seatrial.domain.trial import Trial
from seatrial.errors import NotFound
from seatrial.ports.store import Store


async def sandboxes_of(store: Store, running: Sequence[Trial]) -> list[str | None]:
    """The sandbox of each, by name; ``None`` where its worker has not told yet what works there."""
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
