"""Reads all trials of a job page by page and without their results, which may be large, to save memory."""

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
