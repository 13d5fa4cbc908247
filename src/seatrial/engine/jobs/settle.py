"""Releases the trials of jobs that stop when settled, and drops those that are not needed any more.

Every process with background duties runs it. It decides from the store's trials only, and each of its steps may be
repeated, so that a restart or a second worker does no harm.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from seatrial.domain.job import Job, JobCounts
from seatrial.domain.reports.settling import Finding, Pair
from seatrial.engine.clock import Clock
from seatrial.engine.reports.settled import course_of
from seatrial.errors import NotFound
from seatrial.ports.store import JobFilter, Page, Store, TrialNumbers
from seatrial.ports.wake_up import WakeUp

EVERY_SEC = 1.0
_PAGE = 200
_REST = 5.0
"""A job is looked at for at most a fifth of the time; only those with tens of thousands of trials take that long."""


@dataclass(frozen=True)
class Settler:
    store: Store
    wake_up: WakeUp
    clock: Clock
    _seen: dict[int, JobCounts] = field(default_factory=dict)
    """The counts of each job when it was last looked at. While they stay, there is nothing new to decide."""
    _rests: dict[int, float] = field(default_factory=dict)
    """Until when a job is left alone, because it took long to decide."""

    async def sweep(self) -> int:
        """Looks at all open jobs that stop when settled. Returns how many trials it released or dropped."""
        changed, before = 0, None
        seen: set[int] = set()
        while page := await self.store.jobs.page(Page(limit=_PAGE, before=before), JobFilter(settling=True)):
            counts = await self.store.jobs.counts([job.id for job in page])
            for job in page:
                began = time.monotonic()
                if self._seen.get(job.id) != counts[job.id] and self._rests.get(job.id, 0.0) <= began:
                    changed += await self.step(job)
                    self._seen[job.id] = counts[job.id]
                    self._rests[job.id] = began + _REST * (time.monotonic() - began)
            seen |= counts.keys()
            before = page[-1].id
        for gone in self._seen.keys() - seen:
            del self._seen[gone], self._rests[gone]
        return changed

    async def step(self, job: Job) -> int:
        """Releases the next trials of a job, or drops the rest if it is settled. Returns how many it changed."""
        rule = job.spec.until_settled
        if rule is None:
            return 0
        planned = [trial for trial in await self.store.trials.numbers(job.id) if not trial.added]
        found = await asyncio.to_thread(course_of, rule, job.spec, planned)
        stopped, wanted, quiet = found.finding is not Finding.OPEN, set(found.wanted), set(found.quiet)
        left = [trial for trial in planned if trial.outcome is None]
        # A trial that was tried before is being retried by a user: it runs again whatever the rule says.
        release = [trial.trial_id for trial in left if trial.tries or _pair(trial) in wanted]
        drop = [trial.trial_id for trial in left if not trial.tries and (stopped or _pair(trial) in quiet)]
        changed = await self._drop(job, drop) + await self._release(release)
        if changed:
            await self.wake_up.announce(changed)
        return changed

    async def _drop(self, job: Job, trial_ids: list[int]) -> int:
        return await self.store.jobs.drop_trials(job.id, trial_ids, self.clock()) if trial_ids else 0

    async def _release(self, trial_ids: list[int]) -> int:
        try:
            return await self.store.jobs.release_trials(trial_ids, self.clock()) if trial_ids else 0
        except NotFound:
            return 0  # another process dropped some meanwhile; the counts have changed, so the next sweep looks again


def _pair(trial: TrialNumbers) -> Pair:
    return Pair(trial.task.digest, trial.attempt)
