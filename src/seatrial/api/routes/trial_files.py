"""Files of a trial's tries: list, read in ranges, and the trajectory and the recording."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response, StreamingResponse

from seatrial.api.context import Service, ServiceDep
from seatrial.api.routes.downloads import RangeHeader, download, safe_headers
from seatrial.api.routes.pages import TrialId
from seatrial.api.routes.router import errors, native_router, sends
from seatrial.api.routes.trials import TryNumber
from seatrial.domain.result import StoredFile
from seatrial.engine.trials.trial_files import KeptFiles
from seatrial.errors import NotFound
from seatrial.shapes.trials import FileList, LogItem, LogList

router = native_router("/trials/{trial_id}", "trials")
_MOST_OF_A_LOG = 8 << 20
_ANY_FILE = sends("application/octet-stream", "text/plain", "application/json")
_PART: dict[int | str, dict[str, Any]] = {
    206: {"description": "The requested range.", "content": {"application/octet-stream": {}}}
}


@router.get("/files", responses=errors(404))
async def list_files(service: ServiceDep, trial_id: TrialId, attempt: TryNumber = None) -> FileList:
    """Every file of a try."""
    kept = await service.files.kept(trial_id, attempt)
    return FileList(attempt=kept.try_number, items=list(kept.files), left_out=kept.left_out)


@router.get("/files/{path:path}", response_class=Response, responses=errors(404, 416) | _ANY_FILE | _PART)
async def get_file(
    service: ServiceDep, trial_id: TrialId, path: str, wanted: RangeHeader, attempt: TryNumber = None
) -> Response:
    """One file. Ranges are supported. Types that a browser might run are sent as attachments."""
    kept = await service.files.kept(trial_id, attempt)
    return await _download(service, kept, kept.find(path), wanted)


@router.get("/logs", responses=errors(404))
async def list_logs(service: ServiceDep, trial_id: TrialId, attempt: TryNumber = None) -> LogList:
    """The log files: the agent's, the verifier's, Harbor's, the build's."""
    kept = await service.files.kept(trial_id, attempt)
    return LogList(attempt=kept.try_number, items=[LogItem(name=file.path, size=file.size) for file in kept.logs])


@router.get(
    "/logs/{name:path}",
    response_class=Response,
    responses=errors(404)
    | {
        200: {
            "content": {"text/plain": {}},
            "headers": {"X-Total-Size": {"description": "Size of the whole log.", "schema": {"type": "integer"}}},
        }
    },
)
async def get_log(
    service: ServiceDep,
    trial_id: TrialId,
    name: str,
    attempt: TryNumber = None,
    offset: Annotated[
        int, Query(ge=-(2**62), le=2**62, description="Offset in bytes. Negative values count from the end.")
    ] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_OF_A_LOG, description="Maximum number of bytes.")] = 1 << 20,
) -> Response:
    """A range of a log as text. `X-Total-Size` is the size of the whole log."""
    files = service.files
    kept = await files.kept(trial_id, attempt)
    file = kept.find(name)
    if file not in kept.logs:
        raise NotFound(f"{name} is not a log.", fix=f"It is a file: /api/v1/trials/{trial_id}/files/{name}")
    size = await files.size(kept, file)
    start = max(0, size + offset) if offset < 0 else min(offset, size)
    headers = safe_headers(file.path.rsplit("/", 1)[-1], attach=False)
    headers |= {"X-Total-Size": str(size), "X-Offset": str(start)}
    content = files.stream(kept, file, start, limit)
    return StreamingResponse(content, headers=headers, media_type="text/plain; charset=utf-8")


@router.get("/trajectory", response_class=Response, responses=errors(404, 416) | sends("application/json"))
async def get_trajectory(
    service: ServiceDep, trial_id: TrialId, wanted: RangeHeader, attempt: TryNumber = None
) -> Response:
    """The agent's steps in Harbor's format (ATIF). 404 if the agent wrote none."""
    kept = await service.files.kept(trial_id, attempt)
    return await _download(service, kept, kept.first("agent/trajectory.json"), wanted)


@router.get("/recording", response_class=Response, responses=errors(404, 416) | sends("application/x-asciicast"))
async def get_recording(
    service: ServiceDep, trial_id: TrialId, wanted: RangeHeader, attempt: TryNumber = None
) -> Response:
    """The agent's terminal as an asciinema recording. 404 if the agent used none."""
    kept = await service.files.kept(trial_id, attempt)
    return await _download(service, kept, kept.first(".cast"), wanted)


async def _download(service: Service, kept: KeptFiles, file: StoredFile, wanted: str | None) -> Response:
    """Asks for the size of the stored file first, because files may be removed while their result is kept."""
    files = service.files
    return download(
        file.path,
        await files.size(kept, file),
        file.media_type,
        lambda start, length: files.stream(kept, file, start, length),
        wanted,
    )
