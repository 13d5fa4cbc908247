"""Reads the failed trials of a job and groups them, for the CLI and the API."""

from __future__ import annotations

import asyncio

from seatrial.domain.job import Job
from seatrial.domain.reports.failures import Failures, group_failures
from seatrial.engine.reports.reporting import configuration_labels, task_names
from seatrial.ports.store import TrialStore


async def failures_of(trials: TrialStore, job: Job) -> Failures:
    """Planned trials only: an added attempt is outside of the job's numbers."""
    labels, names = configuration_labels(job.spec.agents), task_names(job.spec.tasks)
    found = [
        row.trial._replace(task=names.get(row.digest, row.trial.task), configuration=labels[row.agent_index])
        for row in await trials.failed(job.id)
    ]
    return await asyncio.to_thread(group_failures, found)
