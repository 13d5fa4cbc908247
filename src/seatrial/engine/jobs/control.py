"""What can be done with a job that exists: release, resume, retry, cancel, delete. Each once, for every door."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from itertools import batched
from types import MappingProxyType

from seatrial.domain.job import Job
from seatrial.domain.trial import Outcome, TrialState
from seatrial.engine.clock import Clock
from seatrial.engine.jobs.ceilings import Ceilings
from seatrial.engine.jobs.keys import KeyRing
from seatrial.engine.jobs.waiting import until_job_ended
from seatrial.engine.reports.summaries import summaries_of
from seatrial.engine.trials.trial_files import trial_prefix
from seatrial.errors import Conflict
from seatrial.ports.blobs import Blobs
from seatrial.ports.queue import Queue
from seatrial.ports.store import Store

UNGRADED = (Outcome.ERROR, Outcome.CANCELLED)
"""What is retried where nobody says what."""
_AT_ONCE = 16
_NO_KEYS: Mapping[str, str] = MappingProxyType({})


class JobControl:
    def __init__(
        self, store: Store, blobs: Blobs, queue: Queue, clock: Clock, keys: KeyRing, ceilings: Ceilings | None = None
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._queue = queue
        self._clock = clock
        self._keys = keys
        self._ceilings = ceilings or Ceilings()

    async def release(
        self, job: Job, trial_ids: Sequence[int], keys: Mapping[str, str] = _NO_KEYS, limit_sec: float | None = None
    ) -> int:
        """Queues held trials of a job; says how many there were. ``limit_sec`` is for each of them as a whole."""
        self._ceilings.check_limit(limit_sec)
        await self._require_keys(job, keys)
        if (sealed := self._keys.sealed(keys)) is not None:
            await self._store.save_job_keys(job.id, sealed)
        return await self._queue_held(trial_ids, limit_sec)

    async def resume(self, job_id: int, keys: Mapping[str, str] = _NO_KEYS) -> int:
        """Queues what was cancelled or held; whatever has a result stays as it is. Says how many."""
        job = await self._store.job(job_id)
        ids = [
            each.trial.id
            async for each in summaries_of(self._store, job_id)
            if each.trial.state is TrialState.HELD or each.trial.outcome is Outcome.CANCELLED
        ]
        return await self._queue_again(job, ids, keys)

    async def retry(
        self,
        job_id: int,
        outcomes: Collection[Outcome] = UNGRADED,
        trials: Collection[int] | None = None,
        keys: Mapping[str, str] = _NO_KEYS,
        *,
        hold: bool = False,
    ) -> int:
        """Queues ended trials with these outcomes again, with their earlier tries kept; says how many.

        ``trials`` narrows it to some of the job. With ``hold`` they wait for ``release``; keys may come then."""
        job = await self._store.job(job_id)
        named = None if trials is None else set(trials)
        ids = [
            each.trial.id
            async for each in summaries_of(self._store, job_id)
            if each.trial.outcome in outcomes and (named is None or each.trial.id in named)
        ]
        if hold:
            return await self._store.retry_trials(ids, self._clock(), hold=True)
        return await self._queue_again(job, ids, keys)

    async def retry_trial(self, trial_id: int, keys: Mapping[str, str] = _NO_KEYS) -> int:
        """Queues one trial again, whatever its outcome."""
        row = await self._store.trial(trial_id)
        return await self._queue_again(await self._store.job(row.trial.job_id), [trial_id], keys)

    async def cancel(self, job_id: int) -> int:
        """Ends what is queued and asks what runs to stop; says how many trials that were."""
        cancelled = await self._store.cancel_job(job_id, self._clock())
        await self._queue.announce()
        return cancelled

    async def cancel_trial(self, trial_id: int) -> int:
        cancelled = await self._store.cancel_trials([trial_id], self._clock())
        await self._queue.announce()
        return cancelled

    async def delete(self, job_id: int) -> None:
        """Forgets an ended job with its trials and all of their files. ``Conflict`` while any of it is left to do."""
        await self._store.job(job_id)
        trial_ids = [summary.trial.id async for summary in summaries_of(self._store, job_id)]
        # The store first: files that nobody knows of do less harm than results whose files are gone.
        await self._store.delete_job(job_id)
        for some in batched(trial_ids, _AT_ONCE):
            await asyncio.gather(*(self._blobs.delete(trial_prefix(trial_id)) for trial_id in some))

    async def stop_and_delete(self, job_id: int, within_sec: float) -> None:
        """``cancel``, then ``delete`` as soon as its workers stopped. ``Conflict`` if that takes longer."""
        await self.cancel(job_id)
        if not await until_job_ended(self._store, job_id, within_sec):
            raise Conflict(f"The trials of job {job_id} are being stopped.", fix="Try again in a moment.")
        await self.delete(job_id)

    async def _queue_again(self, job: Job, trial_ids: Sequence[int], keys: Mapping[str, str]) -> int:
        """A job's keys are forgotten when it ends, so that they may have to come again."""
        if not trial_ids:
            return 0
        await self._require_keys(job, keys)
        reopened = await self._store.retry_trials(trial_ids, self._clock(), hold=True)
        if (sealed := self._keys.sealed(keys)) is not None and (reopened or job.ended_at is None):
            await self._store.save_job_keys(job.id, sealed)
        return await self._queue_held(trial_ids)

    async def _queue_held(self, trial_ids: Sequence[int], limit_sec: float | None = None) -> int:
        released = await self._store.release_trials(trial_ids, self._clock(), limit_sec=limit_sec)
        await self._queue.announce()
        return released

    async def _require_keys(self, job: Job, given: Mapping[str, str]) -> None:
        await self._keys.require(job.spec, {*given, *await self._keys.names_of_job(job.id)})
