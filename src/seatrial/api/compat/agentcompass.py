"""AgentCompass: one request runs one task. The answer is sent when the task is graded.

If the client disconnects, its trial is cancelled. A trial that could not be graded is answered with 5xx and
``retryable``, never with ``"False"``. Called by the route of ``POST /api/tasks`` for JSON bodies.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable
from dataclasses import dataclass

from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from pydantic_core import from_json

from seatrial.api.compat.agentcompass_shapes import (
    Fault,
    TaskRequest,
    TrialAnswer,
    call_stat,
    model_called,
    model_options,
    turns,
)
from seatrial.api.context import Service
from seatrial.api.live.event_stream import until_left
from seatrial.domain.agents.catalogue import keys_for
from seatrial.domain.job import Job, JobSpec
from seatrial.domain.result import Result
from seatrial.domain.task import Task
from seatrial.domain.trial import Cause, Outcome, Trial
from seatrial.engine.jobs.control import until_trial_ended
from seatrial.engine.jobs.keys import check_key
from seatrial.engine.jobs.request import AgentParameters, JobParameters
from seatrial.engine.jobs.submit import EntryPoint
from seatrial.engine.reports.conversation import Message, conversation
from seatrial.engine.trials.run_log import tail
from seatrial.engine.trials.trial_files import KeptFiles
from seatrial.errors import SetupProblem, StoreUnavailable
from seatrial.ports.store import TrialFilter, TrialRow

log = logging.getLogger(__name__)

ORIGIN = "agentcompass"
_AGENT = "terminus-2"
_PASSING = (Cause.LLM, Cause.SANDBOX, Cause.IMAGE, Cause.WORKER_LOST)
"""Errors that another try may avoid."""
_REFUSED = "refused the request"
"""Part of the message of ``agents.model_retries`` when a provider refuses for good."""
_VERIFIER_OUTPUT = ("verifier/test-stdout.txt", "verifier/test-stderr.txt")


@dataclass(frozen=True)
class _ParsedRequest:
    """A parsed request."""

    task: Task
    spec: JobSpec
    keys: dict[str, str]
    model_name: str


async def answer(request: Request, service: Service) -> TrialAnswer | JSONResponse:
    asked = _understood(await request.body())
    if asked.llm_config.api_key is not None:
        request.app.state.redactor.learn([asked.llm_config.api_key])
    try:
        return await _while_connected(request, _run(service, asked))
    except (StoreUnavailable, SetupProblem) as error:
        return _fault(503, Fault(detail=str(error), error=str(error), retryable=True))
    except _Gone:
        return _fault(503, Fault(detail="The client disconnected.", error="disconnected", retryable=True))


def _understood(body: bytes) -> TaskRequest:
    """400 if the body is not a JSON object, 422 if a field is invalid."""
    try:
        document = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise HTTPException(400, "The body is not valid JSON.") from error
    if not isinstance(document, dict):
        raise HTTPException(400, "The body is not a JSON object.")
    try:
        asked = TaskRequest.model_validate(document)
    except ValidationError as error:
        found = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors()]
        raise RequestValidationError(found) from error
    if asked.task_id is None:
        raise HTTPException(400, "params.task_id is missing.")
    return asked


async def _parsed(service: Service, asked: TaskRequest) -> _ParsedRequest:
    llm = asked.llm_config
    model = model_called(llm.model_name, llm.url)
    options = model_options(
        llm.model_infer_params, url=llm.url, max_turns=asked.max_steps, request_timeout=llm.request_timeout
    )
    keys = _keys(model, llm.api_key)
    task = await service.served_tasks.find(asked.task_id or "")
    wanted = JobParameters(
        name=task.name,
        agents=(AgentParameters(name=_AGENT, model=model, options=options),),
        labels={"task_id": asked.task_id or "", "model_name": llm.model_name},
    )
    entry = EntryPoint(ORIGIN, service.model_urls)
    spec = service.installation.submission.plan(
        wanted, (task,), entry, instruction=asked.instruction, own_keys=not keys
    )
    return _ParsedRequest(task, spec, keys, llm.model_name)


def _keys(model: str, key: str | None) -> dict[str, str]:
    names = keys_for(model)
    if key is None or not names:
        return {}
    check_key(names[0], key)
    return {names[0]: key}


class _Gone(Exception):
    """The client disconnected."""


async def _while_connected[T](request: Request, work: Awaitable[T]) -> T:
    """Returns the result of ``work``. Cancels ``work`` if the client disconnects or the server stops."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.create_task(until_left(request.receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise _Gone
        return await working
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
            await asyncio.shield(asyncio.wait({working}))


async def _run(service: Service, asked: TaskRequest) -> TrialAnswer | JSONResponse:
    """Waits for a free slot, in order of arrival, then for the trial."""
    wanted = await _parsed(service, asked)
    there = service.installation
    async with service.waiting:
        job = await there.submission.submit(wanted.spec, wanted.keys)
        try:
            [trial_id] = [row.trial.id async for row in there.store.trials.each(TrialFilter(job_id=job.id))]
            row = await until_trial_ended(there.store.trials, trial_id)
        except BaseException:  # the client disconnected as well: nobody waits for the trial
            await asyncio.shield(_cancel(service, job))
            raise
    return await _answer(service, wanted, row)


async def _cancel(service: Service, job: Job) -> None:
    with contextlib.suppress(StoreUnavailable):
        await service.installation.jobs.cancel(job.id)


async def _answer(service: Service, wanted: _ParsedRequest, row: TrialRow) -> TrialAnswer | JSONResponse:
    trial, result = row.trial, row.result
    if result is None or trial.outcome not in (Outcome.PASSED, Outcome.FAILED):
        return _ungraded(trial, result)
    kept = await service.files.kept(trial.id, trial.try_number)
    spoken = await conversation(service.files, kept)
    if not spoken:
        spoken = (Message(role="user", content=wanted.spec.instruction or wanted.task.instruction),)
    resolved = trial.outcome is Outcome.PASSED
    return TrialAnswer(
        final_answer=str(resolved),
        trajectory=turns(spoken, resolved, await _verifier_output(service, kept)),
        call_stat=call_stat(wanted.model_name, result),
        status=trial.outcome.value,
        error=result.message or None,
        reward=result.reward,
        trial_id=trial.id,
    )


async def _verifier_output(service: Service, kept: KeptFiles) -> str:
    found = sorted((file for file in kept.files if file.path.endswith(_VERIFIER_OUTPUT)), key=lambda file: file.path)
    return "\n".join([await tail(service.files, kept, file) for file in found])


def _ungraded(trial: Trial, result: Result | None) -> JSONResponse:
    if trial.outcome is Outcome.CANCELLED or result is None:
        message, retryable = "The trial was cancelled.", True
    else:
        message = result.message or "The trial could not be graded."
        retryable = trial.cause in _PASSING and _REFUSED not in message
    fault = Fault(
        detail=message,
        status=(trial.outcome or Outcome.ERROR).value,
        error=message,
        cause=trial.cause,
        retryable=retryable,
        trial_id=trial.id,
    )
    return _fault(503 if retryable else 500, fault)


def _fault(status: int, fault: Fault) -> JSONResponse:
    return JSONResponse(fault.model_dump(mode="json"), status)
