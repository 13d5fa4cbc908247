"""A job or a trial as an archive of pages that open from disk."""

from __future__ import annotations

from datetime import datetime

from fastapi.responses import Response, StreamingResponse

from seatrial import __version__
from seatrial.api.context import ServiceDep
from seatrial.api.routes.downloads import safe_headers
from seatrial.api.routes.pages import JobId, TrialId
from seatrial.api.routes.router import errors, native_router, sends
from seatrial.engine.reports.reporting import report_job
from seatrial.engine.reports.static_export import ExportedJob, StoredReader, job_archive, trial_archive
from seatrial.errors import Conflict
from seatrial.ports.store import TrialFilter

router = native_router("", "reports")
_MOST_TRIALS = 2_000
_ZIP = "application/zip"


@router.get("/jobs/{job_id}/static.zip", response_class=Response, responses=errors(404, 409) | sends(_ZIP))
async def export_job(service: ServiceDep, job_id: JobId) -> Response:
    """Pages that open from disk without network and scripts: scores, trials, tests, transcripts, lists of files.

    409 for a job with more than 2000 trials; `seatrial job export` has no limit."""
    store = service.installation.store
    job = await store.jobs.get(job_id)
    counts = (await store.jobs.counts([job_id]))[job_id]
    if counts.total + counts.added.total > _MOST_TRIALS:
        raise Conflict(f"Job {job_id} has too many trials for one answer.", fix=f"Use: seatrial job export {job_id}")
    rows = [row async for row in store.trials.each(TrialFilter(job_id=job_id))]
    shown = ExportedJob(job=job, counts=counts, report=await report_job(store.trials, job))
    pages = job_archive(shown, rows, StoredReader(service.files), _exported(service.installation.clock()))
    return StreamingResponse(pages, headers=safe_headers(f"job-{job_id}.zip", attach=True), media_type=_ZIP)


@router.get("/trials/{trial_id}/static.zip", response_class=Response, responses=errors(404) | sends(_ZIP))
async def export_trial(service: ServiceDep, trial_id: TrialId) -> Response:
    """A page that opens from disk: result, tests, transcript and list of files."""
    row = await service.installation.store.trials.get(trial_id)
    pages = trial_archive(row, StoredReader(service.files), _exported(service.installation.clock()))
    return StreamingResponse(pages, headers=safe_headers(f"trial-{trial_id}.zip", attach=True), media_type=_ZIP)


def _exported(now: datetime) -> str:
    return f"Exported {now:%Y-%m-%d %H:%M} UTC by Seatrial {__version__}."
