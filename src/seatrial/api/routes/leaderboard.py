"""``/api/v1/leaderboard``: configurations × datasets over all jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query

from seatrial.api.context import ServiceDep
from seatrial.api.routes.router import errors, native_router
from seatrial.domain.reports.leaderboard import Leaderboard
from seatrial.engine.reports.leaderboard import LeaderboardFilter, Leaderboards
from seatrial.shapes.answers import Plain

router = native_router("/leaderboard", "reports")


@router.get("", responses=errors())
async def get_leaderboard(
    service: ServiceDep,
    dataset: Annotated[Plain | None, Query(description="NAME or NAME@VERSION.")] = None,
    agent: Plain | None = None,
    model: Plain | None = None,
    since: Annotated[datetime | None, Query(description="Only jobs created then or later; by default in UTC.")] = None,
) -> Leaderboard:
    """Every configuration on every set of tasks that it ran, eligible ones ranked first, others with the reason.

    The newest eligible job represents a configuration; without one, the newest with a score. Jobs are never pooled;
    `others` lists the rest.
    """
    boards = Leaderboards(service.installation.store, service.listing, service.ended_jobs)
    return await boards.leaderboard(LeaderboardFilter(dataset=dataset, agent=agent, model=model, since=since))
