"""Small response models of TBench Runner's API, and the errors that its routes answer."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

from seatrial import __version__
from seatrial.api.compat.tbench_shapes import RunStatus
from seatrial.api.routes.router import refers_to


class Detail(BaseModel):
    """The body of every error."""

    detail: str


def may_fail(*statuses: int) -> dict[int | str, dict[str, Any]]:
    gates = (401, 403, 408, 413, 421, 422, 429, 503)
    return {status: refers_to(Detail, HTTPStatus(status).phrase) for status in sorted({*gates, *statuses})}


class About(BaseModel):
    name: str = "Seatrial"
    version: str = __version__
    status: str = "running"
    docs: str = "/docs"


class RunnerModel(BaseModel):
    id: str
    name: str
    provider: str


class RunnerAgent(BaseModel):
    id: str
    name: str
    harness: str


class Message(BaseModel):
    message: str


class TaskMessage(Message):
    task_id: int


class RunsQueued(TaskMessage):
    runs_queued: int
    status: str = "running"
    poll_url: str


class RunQueued(TaskMessage):
    run_id: int
    status: str = "queued"
    poll_url: str


class RunLogs(BaseModel):
    run_id: int
    task_id: int
    run_number: int
    status: RunStatus
    logs: str
    error_message: str | None


class TaskNumbers(BaseModel):
    total: int
    pending: int
    running: int
    completed: int
    failed: int


class RunNumbers(BaseModel):
    total: int
    passed: int
    failed: int


class Numbers(BaseModel):
    tasks: TaskNumbers
    runs: RunNumbers
