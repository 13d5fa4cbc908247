"""An upload of a TBench Runner client: its parameters, and the job made from it."""

from __future__ import annotations

import hashlib
import json

from pydantic import BaseModel, Field

from seatrial.api.compat.tbench_shapes import AGENT, DESCRIPTION, FILENAME, HARNESS, MODEL
from seatrial.api.context import Caller
from seatrial.domain.catalogue import MODELS
from seatrial.domain.job import JobSpec
from seatrial.domain.task import Task
from seatrial.engine.jobs.request import AgentWish, JobWish
from seatrial.errors import InvalidInput
from seatrial.ports.store import Once


class NewTask(BaseModel):
    """Parameters of an upload, from the query or the form."""

    name: str = Field(min_length=1, max_length=255, pattern=r"^[^\x00]*$")
    model: str = Field(default=MODELS[0].id, max_length=255, pattern=r"^[^\x00]*$")
    agent: str = Field(default="terminus-2", max_length=255, pattern=r"^[^\x00]*$")
    harness: str = Field(default="harbor", max_length=255, pattern=r"^[^\x00]*$")
    num_runs: int = Field(default=10, ge=1, le=100)


def wish_of(wanted: NewTask, task: Task, filename: str) -> JobWish:
    if ":" in wanted.agent:
        raise InvalidInput(f"There is no agent {wanted.agent!r}.", field="agent", fix="GET /api/agents lists them.")
    return JobWish(
        name=wanted.name,
        agents=(AgentWish(name=wanted.agent),),
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
