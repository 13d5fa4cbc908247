"""``/api/v1/jobs``: create, estimate, list, show, cancel, resume, retry, delete."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Query, Request

from seatrial import wiring
from seatrial.api.context import GivenKeys, OnceDep, Service, ServiceDep, TriageActionsDep
from seatrial.api.routes.pages import JobId, RequestedPage, cut, requested_page
from seatrial.api.routes.router import errors, native_router
from seatrial.domain.agents.catalogue import takes_model
from seatrial.domain.job import Job, JobSpec, JobStatus
from seatrial.domain.task import Task
from seatrial.engine.jobs.budget_rules import unpriced_warnings
from seatrial.engine.jobs.choice import choose
from seatrial.engine.jobs.command_line import curl_line, run_line
from seatrial.engine.jobs.estimate import Estimator
from seatrial.engine.jobs.notices import notices
from seatrial.engine.jobs.submit import EntryPoint
from seatrial.engine.recent import EndedJobs
from seatrial.engine.reports.listing import JobListing
from seatrial.engine.reports.progress import progress_of
from seatrial.errors import MissingKey
from seatrial.ports.store import JobFilter, JobStore, Page
from seatrial.shapes.answers import Plain
from seatrial.shapes.budgets import CapState, Spent
from seatrial.shapes.jobs import (
    Added,
    AttemptsRequest,
    Cancelled,
    JobDetail,
    JobEstimate,
    JobItem,
    JobPage,
    JobRequest,
    Queued,
    RetryRequest,
)
from seatrial.shapes.triage import JobChange
from seatrial.sizing import usual_concurrency

router = native_router("/jobs", "jobs")


@router.post("", status_code=201, responses=errors(400, 409, 507))
async def create_job(service: ServiceDep, wanted: JobRequest, keys: GivenKeys, once: OnceDep) -> JobItem:
    """Queues tasks × agents × models × attempts. Validates everything first; an error names the field.

    Send provider keys as headers (`X-Provider-Key: NAME=value`). They are deleted when the job ends.
    """
    spec, _ = await _planned(service, wanted)
    job = await service.installation.submission.submit(spec, keys, once)
    return JobItem.of(await service.listing.line(job, with_score=False))


@router.post("/estimate", responses=errors(400))
async def estimate_job(service: ServiceDep, wanted: JobRequest, keys: GivenKeys, request: Request) -> JobEstimate:
    """Estimates cost and duration from earlier trials. Starts nothing. Refuses whatever `create_job` refuses."""
    installation = service.installation
    spec, tasks = await _planned(service, wanted)
    await installation.submission.check(spec, None)
    warnings = await asyncio.to_thread(notices, wanted, spec.agents, wiring.model_names)
    try:
        await installation.keys.require(spec, tuple(keys))
    except MissingKey as error:
        warnings.insert(0, f"{error.message} {error.fix}")
    unpriced = await asyncio.to_thread(installation.submission.budgets.unpriced, spec)
    warnings += unpriced_warnings(unpriced)
    estimator = Estimator(installation.store, installation.clock, usual_concurrency(installation.settings), takes_model)
    found = await estimator.estimate(spec, tasks)
    return JobEstimate(
        **found.model_dump(exclude={"warnings"}),
        warnings=(*warnings, *found.warnings),
        command=run_line(wanted, wanted.tasks, spec.agents),
        curl=curl_line(str(request.url_for("create_job")), wanted),
        unpriced=unpriced,
    )


@router.post("/check", status_code=204, responses=errors(400))
async def check_job(service: ServiceDep, wanted: JobRequest, keys: GivenKeys) -> None:
    """Checks all of a request except its tasks: agents, models, keys, sandbox, limits. For clients that would upload
    tasks for it."""
    submission = service.installation.submission
    spec = submission.plan(wanted, (), EntryPoint(model_urls=service.model_urls))
    await submission.check_setup(spec, tuple(keys))


@dataclass(frozen=True)
class JobChoice:
    """Its fields are those of ``JobFilter``."""

    status: JobStatus | None = None
    name: Annotated[Plain | None, Query(description="Part of the name; case is ignored.")] = None
    dataset: Plain | None = None
    task: Annotated[Plain | None, Query(description="Only jobs with a task of this name.")] = None
    agent: Plain | None = None
    model: Plain | None = None
    origin: Annotated[Plain | None, Query(description="seatrial, tbench-runner or agentcompass.")] = None
    pinned: bool | None = None


@router.get("", responses=errors())
async def list_jobs(
    service: ServiceDep,
    which: Annotated[JobChoice, Depends()],
    page: Annotated[RequestedPage, Depends(requested_page)],
    include: Annotated[list[Literal["score"]] | None, Query(description="`score` includes each job's score.")] = None,
) -> JobPage:
    """Jobs with their counts, newest first."""
    store, chosen = service.installation.store, JobFilter(**vars(which))
    shown, last = cut(
        await job_items(store.jobs, service.listing, service.ended_jobs, page.by_id(), chosen, bool(include)),
        page.limit,
    )
    return JobPage(items=shown, next=str(last.id) if last else None)


@router.get("/{job_id}", responses=errors(404))
async def get_job(service: ServiceDep, job_id: JobId) -> JobDetail:
    """One job: its counts, its scores so far, its pace, and its specification."""
    job = await service.installation.store.jobs.get(job_id)
    line = await service.listing.line(job)
    now = service.installation.clock()
    found = await progress_of(service.installation.store.jobs, line.job, line.counts, now)
    obstacle = "" if line.counts.done else await service.installation.places.obstacle(job_id)
    cap_usages = await service.installation.cap_usages.of_job(job_id, job.spec, now)
    return JobDetail.of(
        line,
        spec=job.spec,
        progress=found,
        obstacle=obstacle,
        spending=Spent.of(cap_usages[0].spending),
        budgets=[] if line.counts.done else [CapState.of_usage(each) for each in cap_usages if each.cap],
    )


@router.patch("/{job_id}", status_code=204, responses=errors(400, 404))
async def change_job(actions: TriageActionsDep, job_id: JobId, wanted: JobChange) -> None:
    """Renames or pins a job. What it ran and its results stay as they are."""
    if wanted.name is not None:
        await actions.rename(job_id, wanted.name)
    if wanted.pinned is not None:
        await actions.pin(job_id, wanted.pinned)


@router.delete("/{job_id}", status_code=204, responses=errors(404, 409))
async def delete_job(service: ServiceDep, job_id: JobId) -> None:
    """Deletes an ended job with its trials and all their files. 409 while the job has not ended."""
    await service.installation.jobs.delete(job_id)


@router.post("/{job_id}/cancel", responses=errors(404))
async def cancel_job(service: ServiceDep, job_id: JobId) -> Cancelled:
    """Cancels a job. Queued trials end now; workers stop running ones within seconds."""
    return Cancelled(cancelled=await service.installation.jobs.cancel(job_id))


@router.post("/{job_id}/resume", responses=errors(400, 404))
async def resume_job(service: ServiceDep, job_id: JobId, keys: GivenKeys) -> Queued:
    """Queues trials that were cancelled or never ran. Trials with a result stay as they are."""
    return Queued(queued=await service.installation.jobs.resume(job_id, keys))


@router.post("/{job_id}/retry", responses=errors(400, 404, 409))
async def retry_job(service: ServiceDep, job_id: JobId, keys: GivenKeys, wanted: RetryRequest) -> Queued:
    """Runs trials of a job again that ended in errors or were cancelled. Graded trials are refused: their results are
    final."""
    return Queued(queued=await service.installation.jobs.retry(job_id, wanted.outcomes, wanted.trials, keys))


@router.post("/{job_id}/attempts", status_code=201, responses=errors(400, 404))
async def add_attempts(service: ServiceDep, job_id: JobId, keys: GivenKeys, wanted: AttemptsRequest) -> Added:
    """Runs graded trials again as further attempts outside of the plan. Their results are shown apart and are not part
    of the score."""
    return Added(trials=await service.installation.jobs.add_attempts(job_id, wanted.outcomes, wanted.trials, keys))


async def job_items(
    stored: JobStore, listing: JobListing, ended: EndedJobs, page: Page, chosen: JobFilter, with_score: bool
) -> list[JobItem]:
    """The items of ended jobs are cached. Most jobs of a page have ended."""
    jobs = await stored.page(page, chosen)
    known = {job.id: item for job in jobs if (item := ended.get(job, JobItem, with_score)) is not None}
    unknown = [job for job in jobs if job.id not in known]
    for line in await listing.lines(unknown, with_score=with_score):
        known[line.job.id] = item = JobItem.of(line)
        if line.counts.done:
            ended.put(line.job, item, with_score)
    return [as_named_now(known[job.id], job) for job in jobs]


def as_named_now(item: JobItem, job: Job) -> JobItem:
    """A cached item may be older than the job's name and pin."""
    now = {"name": job.title, "pinned": job.pinned_at is not None}
    return item if all(getattr(item, name) == value for name, value in now.items()) else item.model_copy(update=now)


async def _planned(service: Service, wanted: JobRequest) -> tuple[JobSpec, tuple[Task, ...]]:
    """The job that a request describes, and its tasks."""
    installation = service.installation
    tasks = await choose(installation.store.tasks, wanted.tasks, wanted.dataset, wanted.selection)
    return installation.submission.plan(wanted, tasks, EntryPoint(model_urls=service.model_urls)), tasks
