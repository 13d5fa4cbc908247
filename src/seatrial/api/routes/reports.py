"""Reports, grids and tables of jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import Response, StreamingResponse

from seatrial.api.context import ServiceDep
from seatrial.api.routes.downloads import safe_headers
from seatrial.api.routes.pages import JobId
from seatrial.api.routes.router import errors, native_router, sends
from seatrial.domain.reports.failures import Failures
from seatrial.domain.reports.pictures import Trend
from seatrial.domain.reports.report import JobReport
from seatrial.engine.reports.grid import Grid, grid_of, table_of
from seatrial.engine.reports.reporting import failures_of, report_job
from seatrial.engine.reports.trend import trend_of

router = native_router("", "reports")


@router.get("/jobs/{job_id}/report", responses=errors(404))
async def get_report(
    service: ServiceDep,
    job_id: JobId,
    tests: Annotated[bool, Query(description="Include every test.")] = False,
) -> JobReport:
    """Scores with their uncertainty, errors by cause, costs and durations. Also available while the job runs."""
    store = service.installation.store
    return await report_job(store.trials, await store.jobs.get(job_id), with_tests=tests)


@router.get("/jobs/{job_id}/failures", responses=errors(404))
async def get_failures(service: ServiceDep, job_id: JobId) -> Failures:
    """The trials that failed or ended in an error, grouped by what decided them: failed tests, error line, limit or
    cause. Without added attempts."""
    store = service.installation.store
    return await failures_of(store.trials, await store.jobs.get(job_id))


@router.get("/jobs/{job_id}/trend", responses=errors(404))
async def get_trend(service: ServiceDep, job_id: JobId) -> Trend:
    """Scores over the jobs of this job's dataset that ran the same tasks, oldest first."""
    store = service.installation.store
    return await trend_of(store.jobs, service.listing, await store.jobs.get(job_id))


@router.get("/jobs/{job_id}/grid", responses=errors(404))
async def get_grid(service: ServiceDep, job_id: JobId) -> Grid:
    """Every trial of a job, arranged by task and configuration."""
    store = service.installation.store
    return await grid_of(store.trials, await store.jobs.get(job_id))


@router.get("/jobs/{job_id}/trials.csv", response_class=Response, responses=errors(404) | sends("text/csv"))
async def get_table(service: ServiceDep, job_id: JobId) -> Response:
    """Every trial of a job as a line of CSV."""
    store = service.installation.store
    job = await store.jobs.get(job_id)
    headers = safe_headers(f"job-{job.id}-trials.csv", attach=True)
    return StreamingResponse(table_of(store.trials, job), headers=headers, media_type="text/csv; charset=utf-8")
