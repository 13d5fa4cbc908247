"""Reports, grids, tables and comparisons of jobs, and where two trials diverge."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response, StreamingResponse

from seatrial.api.context import Service, ServiceDep
from seatrial.api.routes.downloads import safe_headers
from seatrial.api.routes.pages import JobId, TrialId
from seatrial.api.routes.router import errors, native_router, sends
from seatrial.domain.comparison import compare_all
from seatrial.domain.divergence import Divergence, diverge
from seatrial.domain.fact import Basis
from seatrial.domain.failures import Failures
from seatrial.domain.pictures import Trend
from seatrial.domain.report import JobReport
from seatrial.domain.verdict import verdict
from seatrial.engine.reports.comparing import look_up, pair_sides
from seatrial.engine.reports.failures import failures_of
from seatrial.engine.reports.grid import Grid, grid_of, table_of
from seatrial.engine.reports.reporting import report_job
from seatrial.engine.reports.trend import trend_of
from seatrial.errors import InvalidInput, NotFound
from seatrial.ports.store import TrialRow
from seatrial.shapes.answers import Plain
from seatrial.shapes.jobs import Comparisons, JudgedComparison

router = native_router("", "reports")
_LARGEST_TRAJECTORY = 64 << 20


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


@router.get("/compare", responses=errors(404))
async def compare_jobs(
    service: ServiceDep,
    baseline: Annotated[Plain, Query(description="A: JOB or JOB:CONFIGURATION.")],
    other: Annotated[
        list[Plain] | None,
        Query(
            max_length=20,
            description="B, repeatable: each is compared with A. Default: compare the configurations of A.",
        ),
    ] = None,
    basis: Basis = Basis.VALID,
    by_name: Annotated[bool, Query(description="Match tasks by name, even if their content differs.")] = False,
) -> Comparisons:
    """Compares A with B on their common tasks: the difference, its confidence, and the smallest detectable
    difference.

    `a_minus_b` is the score of A minus that of B. P-values of several pairs are Holm-corrected.
    """
    sides = []
    for field, wanted in (("baseline", baseline), *(("other", each) for each in other or ())):
        try:
            sides.append(await look_up(service.installation.store, wanted))
        except InvalidInput as error:
            raise InvalidInput(error.message, field=field, fix=error.fix) from error
    found = compare_all(pair_sides(sides), basis=basis, same_name_is_enough=by_name)
    return Comparisons(items=[JudgedComparison(**dict(each), verdict=verdict(each)) for each in found])


@router.get("/trials/{trial_id}/diverges-from/{other_id}", responses=errors(404, 409))
async def get_divergence(service: ServiceDep, trial_id: TrialId, other_id: TrialId) -> Divergence:
    """The first step at which the agents of two trials acted differently, and the tests with different results.

    `left` is the trial named first.
    """
    store = service.installation.store
    left, right = await store.trials.get(trial_id), await store.trials.get(other_id)
    tests = [row.result.tests if row.result else () for row in (left, right)]
    return diverge(await _trajectory(service, left), await _trajectory(service, right), *tests)


async def _trajectory(service: Service, row: TrialRow) -> Any:
    try:
        kept = await service.files.kept(row.trial.id)
        file = kept.first("agent/trajectory.json")
    except NotFound:
        return None
    return await service.files.read_json(kept, file, _LARGEST_TRAJECTORY)
