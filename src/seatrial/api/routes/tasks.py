"""``/api/v1/tasks``: add, validate, show and delete tasks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, File, Query, UploadFile
from fastapi.responses import Response, StreamingResponse

from seatrial.api.answers import as_storage_full, is_disk_full, problem_of
from seatrial.api.context import ServiceDep
from seatrial.api.routes.downloads import RangeHeader, download, safe_headers
from seatrial.api.routes.pages import Digest, RequestedPage, cut, name_cursor, requested_page
from seatrial.api.routes.router import errors, native_router, sends, trial_page
from seatrial.api.routes.uploads import Upload, received
from seatrial.domain.task import Task, TaskFormat
from seatrial.engine.jobs.choice import TaskSearch, search_tasks
from seatrial.engine.tasks.task_files import find_file, list_files, read_file
from seatrial.errors import InvalidInput, SeatrialError
from seatrial.ports.store import TrialFilter
from seatrial.shapes.answers import Plain, Problem
from seatrial.shapes.tasks import (
    CheckedArchive,
    CheckedArchives,
    TakenArchive,
    TakenArchives,
    TaskCheck,
    TaskFileList,
    TaskItem,
    TaskPage,
)
from seatrial.shapes.trials import TrialPage

router = native_router("/tasks", "tasks")
Archives = Annotated[list[UploadFile], File(description="One or many archives of tasks: .zip or .tar.gz.")]
_SCRATCH = re.compile(r"\S*/seatrial-(?:tasks|upload)-[^/\s]+/(?:\d+/)?")


class NothingTaken(InvalidInput):
    """None of the archives could be added."""

    def __init__(self, refused: Sequence[TakenArchive]) -> None:
        faults = [(item.filename, item.error) for item in refused if item.error is not None]
        lines = [f"{filename}: {fault.message} {fault.fix}".strip() for filename, fault in faults]
        super().__init__("\n".join(lines), field="files")
        self.problems = [problem for _, fault in faults for problem in fault.problems]


@router.post("", status_code=201, responses=errors(400, 507))
async def upload_tasks(service: ServiceDep, files: Archives) -> TakenArchives:
    """Adds every task of every archive. Archives are independent: a broken one does not affect the others.

    422 if none could be added; the message then gives the reason for each, and `problems` lists all. If the cause is
    not in the archives, such as a full disk (507), the answer has that status instead.
    """
    installation = service.installation
    taken: list[TakenArchive] = []
    faults: list[SeatrialError] = []
    async with received(files, installation.settings.upload_limit_mb << 20) as uploads:
        for upload in uploads:
            try:
                tasks = await installation.library.add(upload.path)
                taken.append(TakenArchive(filename=upload.filename, tasks=tasks, error=None))
            except (SeatrialError, OSError) as error:
                fault = as_storage_full(error)
                if not isinstance(fault, SeatrialError):
                    raise
                faults.append(fault)
                taken.append(TakenArchive(filename=upload.filename, tasks=[], error=_problem(fault, upload)))
    if len(faults) == len(taken):
        raise next((fault for fault in faults if not isinstance(fault, InvalidInput)), NothingTaken(taken))
    return TakenArchives(items=taken)


@router.post("/validate", responses=errors(400, 507))
async def validate_tasks(service: ServiceDep, files: Archives) -> CheckedArchives:
    """Validates every task of every archive; stores nothing. Problems come with file, line and fix."""
    installation = service.installation
    checked: list[CheckedArchive] = []
    async with received(files, installation.settings.upload_limit_mb << 20) as uploads:
        for upload in uploads:
            try:
                inspected = await installation.library.inspect(upload.path)
                found = [TaskCheck.of(each, await installation.library.has(each.task)) for each in inspected]
                checked.append(CheckedArchive(filename=upload.filename, inspections=found, error=None))
            except InvalidInput as error:
                if is_disk_full(error):  # this says nothing about the archive
                    raise
                problem = _problem(error, upload)
                checked.append(CheckedArchive(filename=upload.filename, inspections=[], error=problem))
    return CheckedArchives(items=checked)


@dataclass(frozen=True)
class TaskChoice:
    """Its fields are those of ``TaskSearch``."""

    name: Annotated[Plain | None, Query(description="The exact name.")] = None
    category: Plain | None = None
    difficulty: Plain | None = None
    tag: Plain | None = None
    format: TaskFormat | None = None
    q: Annotated[Plain | None, Query(description="Words in the name, the description or the instruction.")] = None


@router.get("", responses=errors())
async def list_tasks(
    service: ServiceDep,
    which: Annotated[TaskChoice, Depends()],
    page: Annotated[RequestedPage, Depends(requested_page)],
    latest: Annotated[bool, Query(description="With `name`: only the task that was added or used last.")] = False,
) -> TaskPage:
    """The tasks of the library, by name."""
    tasks = service.installation.store.tasks
    if which.name is not None and latest:
        return TaskPage(items=[TaskItem.of(task) for task in await tasks.find(which.name, 1)])
    found = await search_tasks(tasks, TaskSearch(**vars(which)), page.by_name(), page.one_more)
    shown, last = cut(found, page.limit)
    return TaskPage(items=[TaskItem.of(task) for task in shown], next=name_cursor(last) if last else None)


@router.get("/{digest}", responses=errors(404))
async def get_task(service: ServiceDep, digest: Digest) -> Task:
    """One task: its instruction, limits and resources."""
    return await service.installation.store.tasks.get(digest)


@router.delete("/{digest}", status_code=204, responses=errors(404, 409))
async def delete_task(service: ServiceDep, digest: Digest) -> None:
    """Deletes a task and its files. 409 while a dataset, or a job that has not ended, uses it."""
    await service.installation.library.remove(digest)


@router.get("/{digest}/files", responses=errors(404))
async def list_task_files(service: ServiceDep, digest: Digest) -> TaskFileList:
    """Files of the task, by path."""
    task = await service.installation.store.tasks.get(digest)
    return TaskFileList(items=await list_files(service.installation.library, task))


@router.get(
    "/{digest}/files/{path:path}",
    response_class=Response,
    responses=errors(404, 416) | sends("application/octet-stream", "text/plain"),
)
async def get_task_file(service: ServiceDep, digest: Digest, path: str, wanted: RangeHeader) -> Response:
    """One file of a task. Ranges are supported."""
    task = await service.installation.store.tasks.get(digest)
    file = await find_file(service.installation.library, task, path)
    return download(path, file.size, file.media_type, lambda start, length: read_file(file.path, start, length), wanted)


@router.get("/{digest}/archive", response_class=Response, responses=errors(404) | sends("application/zip"))
async def get_task_archive(service: ServiceDep, digest: Digest) -> Response:
    """The task as a ZIP file. The same content always gives the same bytes."""
    task = await service.installation.store.tasks.get(digest)
    name = f"{task.name.replace('/', '__')}.zip"
    archive = service.installation.library.archive(digest)
    return StreamingResponse(archive, headers=safe_headers(name, attach=True), media_type="application/zip")


@router.get("/{digest}/history", responses=errors(404))
async def get_task_history(
    service: ServiceDep, digest: Digest, page: Annotated[RequestedPage, Depends(requested_page)]
) -> TrialPage:
    """Every trial of tasks with this name, newest first, including earlier versions of the task."""
    store = service.installation.store
    task = await store.tasks.get(digest)
    return trial_page(await store.trials.summaries(TrialFilter(task=task.name), page.by_id()), page.limit)


def _problem(error: SeatrialError, upload: Upload) -> Problem:
    """Without the folder that we unpacked it to."""
    message = _SCRATCH.sub("", error.message.replace(str(upload.path), upload.path.name))
    return problem_of(error).model_copy(update={"message": message, "field": "files"})
