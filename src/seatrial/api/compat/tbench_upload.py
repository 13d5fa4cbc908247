"""An upload of a TBench Runner client: one ZIP archive in a form, its parameters, and the job made from it.

The body streams to disk; the gate for request bodies checks its size. Every error of the client is a 400.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import HTTPException, Request
from fastapi import UploadFile as FormFile
from pydantic import BaseModel, Field
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from seatrial.api.compat.tbench_shapes import AGENT, DESCRIPTION, FILENAME, HARNESS, MODEL
from seatrial.api.context import Caller
from seatrial.api.routes.uploads import Upload, received
from seatrial.domain.agents.catalogue import MODELS
from seatrial.domain.job import JobSpec
from seatrial.domain.task import Task
from seatrial.engine.jobs.request import AgentParameters, JobParameters
from seatrial.errors import InvalidInput
from seatrial.ports.store import Once

_FIELDS = 50
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


class NewTask(BaseModel):
    """Parameters of an upload, from the query or the form."""

    name: str = Field(min_length=1, max_length=255, pattern=r"^[^\x00]*$")
    model: str = Field(default=MODELS[0].id, max_length=255, pattern=r"^[^\x00]*$")
    agent: str = Field(default="terminus-2", max_length=255, pattern=r"^[^\x00]*$")
    harness: str = Field(default="harbor", max_length=255, pattern=r"^[^\x00]*$")
    num_runs: int = Field(default=10, ge=1, le=100)


def parameters_of(wanted: NewTask, task: Task, filename: str) -> JobParameters:
    if ":" in wanted.agent:
        raise InvalidInput(f"There is no agent {wanted.agent!r}.", field="agent", fix="GET /api/agents lists them.")
    return JobParameters(
        name=wanted.name,
        agents=(AgentParameters(name=wanted.agent),),
        models=(wanted.model,) if wanted.model else (),
        attempts=wanted.num_runs,
        labels={
            FILENAME: filename,
            MODEL: wanted.model,
            AGENT: wanted.agent,
            HARNESS: wanted.harness,
            DESCRIPTION: task.description,
        },
    )


def once_of(caller: Caller | None, spec: JobSpec, key: str | None) -> Once | None:
    """The idempotency key. Built from the parameters: the bytes of a form differ each time it is sent."""
    if not key:
        return None
    fingerprint = hashlib.sha256(json.dumps(spec.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()
    return Once(key=f"{caller.name if caller is not None else ''}:{key}", fingerprint=fingerprint)


@dataclass(frozen=True)
class ZipForm:
    """The archive and the other form fields."""

    archive: Upload
    fields: dict[str, str]


@asynccontextmanager
async def received_zip(request: Request, field: str, limit_mb: int) -> AsyncIterator[ZipForm]:
    """Answers 400 if the body is not a form, or the file is missing, too large or not a ZIP archive."""
    form = await _form(request, limit_mb)
    try:
        file = form.get(field)
        if not isinstance(file, UploadFile):
            raise HTTPException(400, f"The form has no file {field!r}.")
        if await file.read(4) not in _ZIP:
            raise HTTPException(400, "The file is not a ZIP archive.")
        await file.seek(0)
        named = FormFile(file.file, size=file.size, filename=file.filename, headers=file.headers)
        async with received([named], limit_mb << 20) as [archive]:
            yield ZipForm(archive, {name: value for name, value in form.items() if isinstance(value, str)})
    finally:
        await form.close()


async def _form(request: Request, limit_mb: int) -> FormData:
    parser = MultiPartParser(request.headers, request.stream(), max_files=1, max_fields=_FIELDS)
    try:
        return await parser.parse()
    except (MultiPartException, KeyError) as error:  # a form without a boundary raises KeyError
        raise HTTPException(400, "The form cannot be read.") from error
    except HTTPException as error:
        if error.status_code == 413:  # raised by the gate for request sizes; this API does not use 413
            raise HTTPException(400, f"The upload is larger than {limit_mb} MB.") from error
        raise
