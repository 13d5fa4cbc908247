"""Pages of jobs as they go over the wire. Most of a page are jobs that ended long ago, and theirs is made once.

An ended job cannot change before somebody retries it, and then its end is another one; the store's row tells, whichever
process did that.
"""

from __future__ import annotations

from collections.abc import Hashable

from seatrial.domain.job import Job
from seatrial.engine.recent import RecentlyUsed
from seatrial.engine.reports.listing import JobListing
from seatrial.ports.store import JobFilter, JobStore, Page
from seatrial.shapes.jobs import JobItem

_REMEMBERED = 1000
"""Jobs; some two thousand bytes each."""


class JobItems:
    """Made once per process."""

    def __init__(self, jobs: JobStore, listing: JobListing) -> None:
        self._jobs = jobs
        self._listing = listing
        self._ended: RecentlyUsed[JobItem] = RecentlyUsed(_REMEMBERED)

    async def page(self, page: Page, chosen: JobFilter, *, with_score: bool) -> list[JobItem]:
        jobs = await self._jobs.jobs(page, chosen)
        known = {job.id: item for job in jobs if (item := self._ended.get(_ending(job, with_score))) is not None}
        unknown = [job for job in jobs if job.id not in known]
        for line in await self._listing.lines(unknown, with_score=with_score):
            known[line.job.id] = item = JobItem.of(line)
            if line.job.ended_at is not None and line.counts.ended == line.counts.total:
                self._ended.put(_ending(line.job, with_score), item)
        return [known[job.id] for job in jobs]


def _ending(job: Job, with_score: bool) -> Hashable:
    """What names the end of a job, and what is told of it; an open one is never kept."""
    return job.id, job.ended_at, with_score
