"""All trials of a job without their results, which may hold megabytes: read page by page, so that memory stays flat."""

from __future__ import annotations

from collections.abc import AsyncIterator

from seatrial.ports.store import Page, TrialFilter, TrialStore, TrialSummary

_PAGE = 1000


async def summaries_of(trials: TrialStore, job_id: int) -> AsyncIterator[TrialSummary]:
    """Newest first."""
    before: int | None = None
    while page := await trials.summaries(TrialFilter(job_id=job_id), Page(limit=_PAGE, before=before)):
        for summary in page:
            yield summary
        before = page[-1].trial.id
