"""The same load through one process and through a fleet's services on the same machine: what do the services cost?"""

from __future__ import annotations

import asyncio

from benchmarks.load import PRESETS, Plan, arguments, measure_load
from benchmarks.load_report import LoadReport
from benchmarks.load_service import started
from benchmarks.place import Place
from benchmarks.row import Row, faster

_LEAST_SHARE = 0.8
_AT_ONCE = 20
"""Trials at once in all, whoever runs them."""


async def measure(place: Place) -> list[Row]:
    full = PRESETS["oracle-750"]
    plan = Plan(full.users, place.count(full.tasks, 1), place.count(full.runs, 2), title=full.title)
    alone = await asyncio.to_thread(_load, place, plan, "embedded", 1)
    fleet = await asyncio.to_thread(_load, place, plan, "fleet", 2)
    runs = plan.users * plan.tasks * plan.runs
    what = f"{runs} runs through API, PostgreSQL, Celery and 2 workers"
    flaws = fleet.lost + fleet.duplicated + fleet.refused + alone.lost + alone.duplicated + alone.refused
    return [
        faster(what, fleet.trials_per_sec, "embedded", alone.trials_per_sec, _LEAST_SHARE),
        Row(f"{runs} runs: lost, duplicated or refused, both ways", str(flaws), "0", flaws == 0),
    ]


def _load(place: Place, plan: Plan, kind: str, workers: int) -> LoadReport:
    """In a thread: the services are started with blocking calls, and the users have a loop of their own."""
    with started(kind, place.cache, workers, _AT_ONCE // workers) as target:
        return asyncio.run(measure_load(target, plan, arguments([])))
