"""Releases, resumes, retries, runs again, cancels and deletes jobs, for the CLI and all APIs."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import batched
from types import MappingProxyType

from seatrial.domain.job import Job
from seatrial.domain.trial import Outcome, TrialState, require_ungraded
from seatrial.engine.clock import Clock
from seatrial.engine.jobs.admission import Ceilings
from seatrial.engine.jobs.budget_rules import BudgetRules
from seatrial.engine.jobs.keys import KeyRing
from seatrial.engine.jobs.settle import Settler
from seatrial.engine.reports.summaries import summaries_of
from seatrial.engine.trials.trial_files import trial_prefix
from seatrial.errors import Conflict, InvalidInput
from seatrial.ports.blobs import Blobs
from seatrial.ports.store import JobStore, Store, TrialRow, TrialStore, TrialSummary
from seatrial.ports.wake_up import WakeUp

UNGRADED = (Outcome.ERROR, Outcome.CANCELLED)
"""The outcomes that can be retried."""
GRADED = (Outcome.PASSED, Outcome.FAILED)
"""The outcomes that are final. Another run is a further attempt."""
_AT_ONCE = 16
_NO_KEYS: Mapping[str, str] = MappingProxyType({})
_FIRST_LOOK_SEC = 0.1
_LOOK_SEC = 1.0


@dataclass(frozen=True)
class JobControl:
    store: Store
    blobs: Blobs
    wake_up: WakeUp
    clock: Clock
    keys: KeyRing
    ceilings: Ceilings = field(default_factory=Ceilings)
    budgets: BudgetRules | None = None
    """Checked again before trials are queued again: the operator may have set a cap after the job was submitted."""

    async def release(
        self, job: Job, trial_ids: Sequence[int], keys: Mapping[str, str] = _NO_KEYS, limit_sec: float | None = None
    ) -> int:
        """Queues held trials of a job. Returns how many. ``limit_sec`` limits each whole trial."""
        self.ceilings.check_limit(limit_sec)
        await self._check_again(job, keys)
        await self._save_keys(job, keys)
        return await self._queue_held(trial_ids, limit_sec)

    async def resume(self, job_id: int, keys: Mapping[str, str] = _NO_KEYS) -> int:
        """Queues cancelled and held trials. Trials with a result stay. Returns how many were queued."""
        job = await self.store.jobs.get(job_id)
        ids = [
            each.trial.id
            async for each in summaries_of(self.store.trials, job_id)
            if each.trial.state is TrialState.HELD or each.trial.outcome is Outcome.CANCELLED
        ]
        return await self._queue_again(job, ids, keys)

    async def retry(
        self,
        job_id: int,
        outcomes: Collection[Outcome] = UNGRADED,
        trials: Collection[int] | None = None,
        keys: Mapping[str, str] = _NO_KEYS,
    ) -> int:
        """Queues ended trials with these outcomes again and keeps their earlier tries. Returns how many.

        ``trials`` limits it to these trials. Refuses graded trials: their results are final."""
        if any(outcome.graded for outcome in outcomes):
            raise InvalidInput(
                "Trials that passed or failed are final and cannot be retried.",
                field="outcomes",
                fix="Add attempts instead: `seatrial job again`, or POST …/attempts.",
            )
        job = await self.store.jobs.get(job_id)
        found = await self._named(job_id, trials)
        if trials is not None:
            for each in found:
                require_ungraded(each.trial)
        return await self._queue_again(job, [each.trial.id for each in found if each.trial.outcome in outcomes], keys)

    async def retry_trial(self, trial_id: int, keys: Mapping[str, str] = _NO_KEYS) -> int:
        """Queues one trial again. Refuses a graded one."""
        trial = (await self.store.trials.get(trial_id)).trial
        require_ungraded(trial)
        return await self._queue_again(await self.store.jobs.get(trial.job_id), [trial_id], keys)

    async def add_attempts(
        self,
        job_id: int,
        outcomes: Collection[Outcome] = GRADED,
        trials: Collection[int] | None = None,
        keys: Mapping[str, str] = _NO_KEYS,
    ) -> list[int]:
        """Runs graded trials with these outcomes again, as further attempts outside of the plan. Returns their ids.

        They are never part of the score. A trial that was run again once is still one trial to run again."""
        job = await self.store.jobs.get(job_id)
        wanted = [each.trial for each in await self._named(job_id, trials) if each.trial.outcome in outcomes]
        ids = [trial.id for trial in wanted if trial.graded and (trials is not None or not trial.added)]
        if not ids:
            return []
        await self._check_again(job, keys)
        added = await self.store.jobs.add_attempts(ids, self.clock(), hold=True)
        await self._save_keys(job, keys)
        await self._queue_held(added)
        return added

    async def start_over(self, job_id: int) -> int:
        """Makes every ended trial wait to be run again: graded ones as further attempts, others in place. Those that a
        further attempt already replaced stay as they are. Returns how many wait."""
        latest: dict[int, TrialSummary] = {}
        async for each in summaries_of(self.store.trials, job_id):  # newest first
            latest.setdefault(each.trial.reruns or each.trial.id, each)
        ids = sorted(each.trial.id for each in latest.values())
        again = await self.store.jobs.retry_trials(ids, self.clock(), hold=True)
        return again + len(await self.store.jobs.add_attempts(ids, self.clock(), hold=True))

    async def cancel(self, job_id: int) -> int:
        """Ends queued trials and asks running ones to stop. Returns how many."""
        cancelled = await self.store.jobs.cancel(job_id, self.clock())
        await self.wake_up.announce()
        return cancelled

    async def cancel_trial(self, trial_id: int) -> int:
        cancelled = await self.store.jobs.cancel_trials([trial_id], self.clock())
        await self.wake_up.announce()
        return cancelled

    async def delete(self, job_id: int) -> None:
        """Deletes an ended job with its trials and all of their files. Raises ``Conflict`` if it has not ended."""
        await self.store.jobs.get(job_id)
        trial_ids = [summary.trial.id async for summary in summaries_of(self.store.trials, job_id)]
        # The store first: files without a result do less harm than results without their files.
        await self.store.jobs.delete(job_id)
        for some in batched(trial_ids, _AT_ONCE):
            await asyncio.gather(*(self.blobs.delete(trial_prefix(trial_id)) for trial_id in some))

    async def stop_and_delete(self, job_id: int, within_sec: float) -> None:
        """Cancels the job, waits for its workers, and deletes it. Raises ``Conflict`` if that takes too long."""
        await self.cancel(job_id)
        if not await until_job_ended(self.store.jobs, job_id, within_sec):
            raise Conflict(f"The trials of job {job_id} are being stopped.", fix="Try again in a moment.")
        await self.delete(job_id)

    async def _queue_again(self, job: Job, trial_ids: Sequence[int], keys: Mapping[str, str]) -> int:
        """Checks budgets and keys first: the keys of a job are deleted when it ends."""
        if not trial_ids:
            return 0
        await self._check_again(job, keys)
        reopened = await self.store.jobs.retry_trials(trial_ids, self.clock(), hold=True)
        if reopened or job.ended_at is None:
            await self._save_keys(job, keys)
        if job.spec.until_settled is None:
            return await self._queue_held(trial_ids)
        await Settler(self.store, self.wake_up, self.clock).step(job)  # trials that the rule holds back stay held
        return reopened

    async def _named(self, job_id: int, trials: Collection[int] | None) -> list[TrialSummary]:
        """The trials of a job, or these of them."""
        named = None if trials is None else set(trials)
        found = [each async for each in summaries_of(self.store.trials, job_id)]
        return [each for each in found if named is None or each.trial.id in named]

    async def _save_keys(self, job: Job, keys: Mapping[str, str]) -> None:
        if (sealed := self.keys.sealed(keys)) is not None:
            await self.store.jobs.save_sealed_keys(job.id, sealed)

    async def _queue_held(self, trial_ids: Sequence[int], limit_sec: float | None = None) -> int:
        released = await self.store.jobs.release_trials(trial_ids, self.clock(), limit_sec=limit_sec)
        await self.wake_up.announce(released)
        return released

    async def _check_again(self, job: Job, given: Mapping[str, str]) -> None:
        if self.budgets is not None:
            self.budgets.check(job.spec)
        await self.keys.require(job.spec, {*given, *await self.keys.names_of_job(job.id)})


async def until_trial_ended(trials: TrialStore, trial_id: int) -> TrialRow:
    """Asks the store often at first, then once a second."""
    pause = _FIRST_LOOK_SEC
    while (row := await trials.get(trial_id)).trial.state is not TrialState.ENDED:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LOOK_SEC)
    return row


async def until_job_ended(jobs: JobStore, job_id: int, seconds: float) -> bool:
    """Whether it ended within that time."""
    deadline = asyncio.get_running_loop().time() + seconds
    while (await jobs.get(job_id)).ended_at is None:
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(_FIRST_LOOK_SEC)
    return True
