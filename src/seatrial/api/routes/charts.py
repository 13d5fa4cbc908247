"""Pictures of a job: as marks that the page draws, as SVG files, and all of them in one HTML report."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query
from fastapi.responses import Response

from seatrial.api.context import Service, ServiceDep
from seatrial.api.routes.downloads import safe_headers
from seatrial.api.routes.pages import JobId
from seatrial.api.routes.router import errors, native_router, sends
from seatrial.charts.draw import NARROWEST, WIDEST, WIDTH, Subject, draw, draw_all
from seatrial.charts.report_page import POLICY, report_page
from seatrial.charts.scene import ChartName, Charts
from seatrial.charts.svg import svg_file
from seatrial.engine.reports.configurations import agents_by_label
from seatrial.engine.reports.reporting import report_job
from seatrial.engine.reports.trend import trend_of

router = native_router("/jobs/{job_id}", "reports")
Width = Annotated[int, Query(ge=NARROWEST, le=WIDEST, description="Width in pixels.")]
_SVG_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""Inline styles: the file brings its own. Nothing runs, even if somebody opens the address."""


@router.get("/charts", responses=errors(404))
async def get_charts(service: ServiceDep, job_id: JobId, width: Width = WIDTH) -> Charts:
    """Every picture as marks to draw, with the table behind it."""
    subject = await _subject(service, job_id)
    return await asyncio.to_thread(draw_all, subject, width)


@router.get("/charts/{name}.svg", response_class=Response, responses=errors(404) | sends("image/svg+xml"))
async def get_chart(service: ServiceDep, job_id: JobId, name: ChartName, width: Width = WIDTH) -> Response:
    """One picture as a file."""
    subject = await _subject(service, job_id)
    text = await asyncio.to_thread(lambda: svg_file(draw(name, subject, width)))
    headers = safe_headers(f"job-{job_id}-{name}.svg", attach=False) | {"Content-Security-Policy": _SVG_POLICY}
    return Response(text, headers=headers, media_type="image/svg+xml")


@router.get("/report.html", response_class=Response, responses=errors(404) | sends("text/html"))
async def get_report_page(service: ServiceDep, job_id: JobId) -> Response:
    """The report with all pictures as one file that needs no network."""
    subject = await _subject(service, job_id)
    text = await asyncio.to_thread(report_page, subject)
    headers = safe_headers(f"job-{job_id}-report.html", attach=True) | {"Content-Security-Policy": f"{POLICY}; sandbox"}
    return Response(text, headers=headers, media_type="text/html; charset=utf-8")


async def _subject(service: Service, job_id: int) -> Subject:
    store = service.installation.store
    job = await store.jobs.get(job_id)
    trend = await trend_of(store.jobs, service.listing, job)
    return Subject(job, await report_job(store.trials, job), trend, agents_by_label(job))
