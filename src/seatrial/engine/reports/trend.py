"""Scores over the jobs of one dataset, for a picture."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.domain.job import Job, JobSpec
from seatrial.domain.reports.pictures import Trend, TrendPoint
from seatrial.engine.reports.configurations import configurations_of, labels_over_jobs
from seatrial.engine.reports.listing import JobLine, JobListing
from seatrial.engine.reports.reporting import configuration_labels
from seatrial.ports.store import JobFilter, JobStore, Page

_LOOKED_AT = 500
"""The newest jobs of the dataset."""
MOST_JOBS = 50


async def trend_of(jobs: JobStore, listing: JobListing, job: Job) -> Trend:
    """The newest jobs of this job's dataset that ran exactly its tasks, oldest first."""
    dataset = job.spec.dataset
    if dataset is None:
        return Trend(missing="This job ran no dataset. A trend joins jobs of one dataset.")
    found = await jobs.page(Page(limit=_LOOKED_AT), JobFilter(dataset=dataset))
    tasks = task_set(job.spec)
    same = [other for other in found if task_set(other.spec) == tasks]
    chosen = same[:MOST_JOBS]
    if job.id not in {other.id for other in chosen}:
        chosen.append(job)
    lines = await listing.lines(sorted(chosen, key=lambda other: other.id), with_score=True)
    return Trend(dataset=dataset, points=_points(lines), other_tasks=len(found) - len(same))


def task_set(spec: JobSpec) -> frozenset[str]:
    return frozenset(ref.digest for ref in spec.tasks)


def _points(lines: Sequence[JobLine]) -> tuple[TrendPoint, ...]:
    labels = labels_over_jobs(each for line in lines for each in configurations_of(line.job.spec))
    points = []
    for line in lines:
        spec = line.job.spec
        own = dict(zip(configuration_labels(spec.agents), configurations_of(spec), strict=True))
        for score in line.scores.items if line.scores else ():
            label = labels[own[score.label].key]
            points.append(
                TrendPoint(
                    job=line.job.id,
                    name=line.job.title,
                    created_at=line.job.created_at,
                    score=score.model_copy(update={"label": label}),
                )
            )
    return tuple(points)
