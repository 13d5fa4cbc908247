"""Whether the service lives, and whether it can do its work."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

router = APIRouter(tags=["operations"])


class Health(BaseModel):
    status: str = "healthy"
    service: str = "Terminal-Bench"


@router.get("/health")
async def health() -> Health:
    """Answers whenever the process does."""
    return Health()
