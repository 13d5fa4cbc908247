"""The native API: every router of it under one prefix."""

from __future__ import annotations

from fastapi import APIRouter

from seatrial.api import catalogue, datasets, jobs, reports, tasks, trial_files, trials, workers
from seatrial.api.answers import NATIVE

router = APIRouter(prefix=NATIVE)
for part in (tasks, datasets, jobs, trials, trial_files, reports, catalogue, workers):
    router.include_router(part.router)
