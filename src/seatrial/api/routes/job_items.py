"""Pages of jobs as they go over the wire. Most of a page are jobs that ended long ago, and theirs is made once."""

from __future__ import annotations

from seatrial.engine.recent import EndedJobs
from seatrial.engine.reports.listing import JobListing
from seatrial.ports.store import JobFilter, JobStore, Page
from seatrial.shapes.jobs import JobItem


class JobItems:
    """Made once per process."""

    def __init__(self, jobs: JobStore, listing: JobListing, ended: EndedJobs) -> None:
        self._jobs = jobs
        self._listing = listing
        self._ended = ended

    async def page(self, page: Page, chosen: JobFilter, *, with_score: bool) -> list[JobItem]:
        jobs = await self._jobs.jobs(page, chosen)
        known = {job.id: item for job in jobs if (item := self._ended.get(job, JobItem, with_score)) is not None}
        unknown = [job for job in jobs if job.id not in known]
        for line in await self._listing.lines(unknown, with_score=with_score):
            known[line.job.id] = item = JobItem.of(line)
            if line.counts.done:
                self._ended.put(line.job, item, with_score)
        return [known[job.id] for job in jobs]
