"""TBench Runner's API, so that its page and its load scripts work unchanged.

The ids are Seatrial's: a task is a job, a run is a trial. ``POST /api/tasks`` is shared with AgentCompass; the content
type tells them apart. Errors are ``{"detail": …}``, with 400 for everything that the caller can fix.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, HTTPException, Query, Request, Response

from seatrial.api.compat import agentcompass
from seatrial.api.compat.agentcompass_shapes import BODY_SCHEMA, Fault, TrialAnswer
from seatrial.api.compat.tbench_answers import (
    About,
    Detail,
    Message,
    Numbers,
    RunLogs,
    RunnerAgent,
    RunnerModel,
    RunNumbers,
    TaskMessage,
    TaskNumbers,
    may_fail,
)
from seatrial.api.compat.tbench_lookup import as_400, job_of, rows_of, run_of, task_of, validated
from seatrial.api.compat.tbench_shapes import ORIGIN, RunItem, RunnerTask, TaskDetail, TaskStatus
from seatrial.api.compat.tbench_upload import NewTask, once_of, parameters_of, received_zip
from seatrial.api.context import ServiceDep
from seatrial.api.routes.pages import JobId, Skip, TrialId
from seatrial.api.routes.router import plain_router
from seatrial.domain.agents.catalogue import AGENTS, MODELS, Agent
from seatrial.domain.trial import TrialState
from seatrial.engine.jobs.submit import EntryPoint
from seatrial.engine.trials.run_log import log_text
from seatrial.errors import InvalidInput
from seatrial.ports.store import JobFilter, Page

router = plain_router("TBench Runner")

_STOPPING_SEC = 10.0


@router.get("/", response_model=About)
async def root(request: Request) -> Response | About:
    """The web page for browsers, JSON for programs."""
    page = getattr(request.app.state, "page", None)
    if page is not None and page.is_built and "text/html" in request.headers.get("accept", ""):
        shell: Response = page.shell(request)
        return shell
    return About()


@router.get("/api/models")
async def list_models() -> list[RunnerModel]:
    return [RunnerModel(id=model.id, name=model.name, provider=model.provider) for model in MODELS]


@router.get("/api/agents")
async def list_agents() -> list[RunnerAgent]:
    first = {"terminus-2": 0, "oracle": 1}
    known = sorted(AGENTS, key=lambda agent: (first.get(agent.name, 2), agent.name))
    return [RunnerAgent(id=agent.name, name=_title(agent), harness="harbor") for agent in known]


def _title(agent: Agent) -> str:
    """Starts with the id: the page cuts long titles in its menu."""
    return f"{agent.name} · {agent.description.rstrip('.')}"


@router.post(
    "/api/tasks",
    response_model=RunnerTask | TrialAnswer,
    responses={**may_fail(400, 404, 409, 415, 500, 507), 500: {"model": Fault}, 503: {"model": Fault | Detail}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["file"],
                        "properties": {
                            "file": {"type": "string", "format": "binary"},
                            "name": {"type": "string"},
                            "model": {"type": "string"},
                            "agent": {"type": "string"},
                            "harness": {"type": "string"},
                            "num_runs": {"type": "integer", "minimum": 1, "maximum": 100},
                        },
                    }
                },
                "application/json": {"schema": BODY_SCHEMA},
            },
        }
    },
)
async def create_task(
    request: Request,
    service: ServiceDep,
    idempotency_key: Annotated[str | None, Header(max_length=200, pattern=r"^[^\x00]*$")] = None,
) -> Any:
    """A ZIP archive (multipart) becomes a task whose runs wait to be executed. A JSON body is an AgentCompass
    request: it runs one task and is answered when the task has ended."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return await agentcompass.answer(request, service)
    if kind != "multipart/form-data":
        raise HTTPException(415, "Send a ZIP archive as multipart/form-data, or an AgentCompass request as JSON.")
    settings = service.installation.settings
    async with received_zip(request, "file", settings.upload_limit_mb) as form:
        wanted = validated(NewTask, {**form.fields, **request.query_params})
        with as_400():
            tasks = await service.installation.library.add(form.archive.path)
            if len(tasks) != 1:
                raise InvalidInput(f"The archive holds {len(tasks)} tasks; it must hold exactly one.")
            parameters = parameters_of(wanted, tasks[0], form.archive.filename)
            submission = service.installation.submission
            spec = submission.plan(parameters, tasks, EntryPoint(ORIGIN, service.model_urls))
            once = once_of(request.scope.get("seatrial.caller"), spec, idempotency_key)
            job = await submission.prepare(spec, once)
    return await task_of(service, await service.listing.line(job, with_score=False))


@router.get("/api/tasks", responses=may_fail())
async def list_tasks(
    service: ServiceDep,
    skip: Skip = 0,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    status: TaskStatus | None = None,
) -> list[RunnerTask]:
    """Newest first."""
    chosen = status.filter if status is not None else JobFilter(origin=ORIGIN)
    if chosen is None:
        return []
    lines = await service.listing.page(Page(limit=limit, skip=skip), chosen)
    return [await task_of(service, line) for line in lines]


@router.get("/api/tasks/{task_id}", responses=may_fail(404))
async def get_task(service: ServiceDep, task_id: JobId) -> TaskDetail:
    job = await job_of(service, task_id)
    return TaskDetail.with_runs(await service.listing.line(job, with_score=False), await rows_of(service, job))


@router.delete("/api/tasks/{task_id}", responses=may_fail(404, 409))
async def delete_task(service: ServiceDep, task_id: JobId) -> Message:
    """Cancels unfinished runs, waits for them to stop, then deletes the task and its files."""
    await job_of(service, task_id)
    await service.installation.jobs.stop_and_delete(task_id, _STOPPING_SEC)
    return Message(message="Task deleted successfully")


@router.post("/api/tasks/{task_id}/retry", responses=may_fail(400, 404))
async def retry_task(service: ServiceDep, task_id: JobId) -> TaskMessage:
    """Makes ended runs pending again. Earlier results are kept: a graded run becomes a further attempt with its number,
    and the job's score stays that of its first runs."""
    rows = await rows_of(service, await job_of(service, task_id))
    if any(row.trial.state in (TrialState.QUEUED, TrialState.RUNNING) for row in rows):
        raise HTTPException(400, "The task is running; it can be retried when it has ended.")
    if not await service.installation.jobs.start_over(task_id):
        raise HTTPException(400, "The task has no run that has ended.")
    return TaskMessage(message="Task reset for retry", task_id=task_id)


@router.get("/api/tasks/{task_id}/runs", responses=may_fail(404))
async def list_runs(service: ServiceDep, task_id: JobId) -> list[RunItem]:
    return [RunItem.of(row) for row in await rows_of(service, await job_of(service, task_id))]


@router.get("/api/tasks/{task_id}/runs/{run_id}", responses=may_fail(404))
async def get_run(service: ServiceDep, task_id: JobId, run_id: TrialId) -> RunItem:
    row = await run_of(service, task_id, run_id)
    return RunItem.of(row, await log_text(service.files, service.installation.store.output, row))


@router.get("/api/tasks/{task_id}/runs/{run_id}/logs", responses=may_fail(404))
async def get_logs(service: ServiceDep, task_id: JobId, run_id: TrialId) -> RunLogs:
    """The run's logs, with the test output last. The beginning of a long log is cut."""
    run = await get_run(service, task_id, run_id)
    return RunLogs(run_id=run.id, **run.model_dump(include=RunLogs.model_fields.keys() & RunItem.model_fields.keys()))


@router.get("/api/stats", responses=may_fail())
async def get_stats(service: ServiceDep) -> Numbers:
    """Counts only tasks created through this API."""
    store = service.installation.store
    tasks = {status: await store.jobs.count(chosen) if (chosen := status.filter) else 0 for status in TaskStatus}
    runs = (await store.totals.overview(ORIGIN)).trials
    return Numbers(
        tasks=TaskNumbers(
            total=sum(tasks.values()),
            pending=tasks[TaskStatus.PENDING],
            running=tasks[TaskStatus.RUNNING],
            completed=tasks[TaskStatus.COMPLETED],
            failed=tasks[TaskStatus.FAILED],
        ),
        runs=RunNumbers(total=runs.total, passed=runs.passed, failed=runs.failed),
    )
