"""Pace of a job and the time left, from the store. Called by the API and the CLI."""

from __future__ import annotations

from datetime import datetime

from seatrial.domain.job import Job, JobCounts
from seatrial.domain.reports.progress import RECENT, Progress, WorkLeft, progress
from seatrial.ports.store import JobStore


async def progress_of(jobs: JobStore, job: Job, counts: JobCounts, now: datetime) -> Progress:
    work = WorkLeft() if counts.done else await jobs.work_left(job.id, now - RECENT)
    return progress(work, now, ended=counts.ended, planned=counts.total)
