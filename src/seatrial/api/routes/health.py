"""Liveness and readiness of the service."""

from __future__ import annotations

from typing import Literal

from fastapi import Response
from pydantic import BaseModel

from seatrial.api.compat.tbench_answers import may_fail
from seatrial.api.context import ServiceDep
from seatrial.api.routes.router import plain_router
from seatrial.engine.readiness import Part

router = plain_router("operations")


class Health(BaseModel):
    status: str = "healthy"
    service: str = "Terminal-Bench"


class Ready(BaseModel):
    status: Literal["ready", "not ready"]
    missing: list[str]
    """Names of the parts that do not work."""
    parts: list[Part]


@router.get("/health", responses=may_fail())
async def health() -> Health:
    """Answers as long as the process runs."""
    return Health()


@router.get("/ready", responses={**may_fail(), 503: {"model": Ready}})
async def ready(service: ServiceDep, response: Response) -> Ready:
    """Whether a job submitted now would run. Checks store, queue, files, disk space and live workers."""
    parts = await service.readiness.parts()
    missing = [part.name for part in parts if not part.ok]
    response.status_code = 503 if missing else 200
    return Ready(status="not ready" if missing else "ready", missing=missing, parts=list(parts))
