"""Executing TBench Runner's tasks: queues pending runs with the key and the time limit of the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, HTTPException, Query, Request
from pydantic import BaseModel, Field

from seatrial.api.compat.tbench_answers import RunQueued, RunsQueued, may_fail
from seatrial.api.compat.tbench_lookup import as_400, job_of, rows_of, run_of, validated
from seatrial.api.compat.tbench_shapes import RunResult, RunStatus
from seatrial.api.context import GivenKeys, Service, ServiceDep
from seatrial.api.routes.pages import JobId, TrialId
from seatrial.api.routes.router import plain_router
from seatrial.domain.agents.catalogue import keys_for
from seatrial.domain.job import Job
from seatrial.domain.trial import TrialState
from seatrial.engine.jobs.control import until_trial_ended
from seatrial.engine.jobs.keys import check_key
from seatrial.ports.store import TrialRow

router = plain_router("TBench Runner")

_KEY = "OPENROUTER_API_KEY"
_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
_LONGEST_SEC = 7 * 86400
_NOTHING_PENDING = "The task has no pending run. Retry makes ended runs pending again."


@dataclass(frozen=True)
class Execution:
    """How to execute runs."""

    keys: dict[str, str]
    limit_sec: float


class _Limit(BaseModel):
    timeout_seconds: float = Field(default=1200, gt=0, le=_LONGEST_SEC, allow_inf_nan=False)


async def _execution(
    request: Request,
    given: GivenKeys,
    openrouter_api_key: Annotated[str | None, Query(description="Prefer the X-Provider-Key header.")] = None,
    timeout_seconds: Annotated[
        float, Query(gt=0, le=_LONGEST_SEC, allow_inf_nan=False, description="Time limit of a whole run.")
    ] = 1200,
) -> Execution:
    """From query parameters or form fields."""
    keys = dict(given)
    if openrouter_api_key:
        keys.setdefault(_KEY, openrouter_api_key)
    limit = timeout_seconds
    if request.headers.get("content-type", "").lower().startswith(_FORMS):
        async with request.form(max_files=0, max_fields=50) as form:
            fields = {name: value for name, value in form.items() if isinstance(value, str) and value}
        if key := fields.get("openrouter_api_key"):
            request.app.state.redactor.learn([key])
            keys.setdefault(_KEY, key)
        if "timeout_seconds" in fields:
            limit = validated(_Limit, {"timeout_seconds": fields["timeout_seconds"]}).timeout_seconds
    with as_400():
        for name, value in keys.items():
            check_key(name, value)
    return Execution(keys, limit)


ExecutionDep = Annotated[Execution, Depends(_execution)]


@router.post("/api/tasks/{task_id}/start", responses=may_fail(400, 404))
async def start_task(service: ServiceDep, task_id: JobId, execution: ExecutionDep) -> RunsQueued:
    """Same as execute-async."""
    return await execute_task(service, task_id, execution)


@router.post("/api/tasks/{task_id}/execute-async", responses=may_fail(400, 404))
async def execute_task(service: ServiceDep, task_id: JobId, execution: ExecutionDep) -> RunsQueued:
    """Queues every pending run."""
    job = await job_of(service, task_id)
    pending = _pending(await rows_of(service, job))
    released = await _release(service, job, pending, execution)
    return RunsQueued(
        message=f"Task queued with {released} runs",
        task_id=task_id,
        runs_queued=released,
        poll_url=f"/api/tasks/{task_id}",
    )


@router.post("/api/tasks/{task_id}/execute-one", responses=may_fail(400, 404))
async def execute_one(service: ServiceDep, task_id: JobId, execution: ExecutionDep) -> RunResult:
    """Executes the first pending run and waits for it."""
    job = await job_of(service, task_id)
    pending = _pending(await rows_of(service, job))
    await _release(service, job, pending[:1], execution)
    return RunResult.of(await until_trial_ended(service.installation.store.trials, pending[0]))


@router.post("/api/tasks/{task_id}/runs/{run_id}/execute", responses=may_fail(400, 404))
async def execute_run(service: ServiceDep, task_id: JobId, run_id: TrialId, execution: ExecutionDep) -> RunResult:
    """Executes one pending run and waits for it."""
    await _release_run(service, task_id, run_id, execution)
    return RunResult.of(await until_trial_ended(service.installation.store.trials, run_id))


@router.post("/api/tasks/{task_id}/runs/{run_id}/execute-async", responses=may_fail(400, 404))
async def execute_run_async(service: ServiceDep, task_id: JobId, run_id: TrialId, execution: ExecutionDep) -> RunQueued:
    await _release_run(service, task_id, run_id, execution)
    return RunQueued(
        message="Run queued", task_id=task_id, run_id=run_id, poll_url=f"/api/tasks/{task_id}/runs/{run_id}"
    )


def _pending(rows: list[TrialRow]) -> list[int]:
    pending = [row.trial.id for row in rows if row.trial.state is TrialState.HELD]
    if not pending:
        raise HTTPException(400, _NOTHING_PENDING)
    return pending


async def _release_run(service: Service, task_id: int, run_id: int, execution: Execution) -> None:
    run = await run_of(service, task_id, run_id)
    if run.trial.state is not TrialState.HELD:
        state = RunStatus.of(run.trial, run.result)
        raise HTTPException(400, "Run is already queued" if state is RunStatus.PENDING else f"Run is already {state}")
    await _release(service, await job_of(service, task_id), [run_id], execution)


async def _release(service: Service, job: Job, trial_ids: list[int], execution: Execution) -> int:
    """Stores only the keys that the job's model needs. Two concurrent calls share the pending runs."""
    needed = {name for agent in job.spec.agents if agent.model for name in keys_for(agent.model)}
    keys = {name: value for name, value in execution.keys.items() if name in needed}
    with as_400():
        released = await service.installation.jobs.release(job, trial_ids, keys, execution.limit_sec)
    if not released:
        raise HTTPException(400, _NOTHING_PENDING)
    return released
