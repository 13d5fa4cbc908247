"""750 real oracle runs through the API, twice in turn: embedded (SQLite, one process group) and as a fleet (PostgreSQL,
Celery on Redis, two worker processes of their own). Both have two workers, so only what is between them differs."""

from __future__ import annotations

import asyncio
import statistics

from benchmarks.load import PRESETS, Plan, arguments
from benchmarks.load import measure as load
from benchmarks.load_report import LoadReport
from benchmarks.load_service import KINDS, started
from benchmarks.place import Place
from benchmarks.row import Row

_LEAST = 0.8
_ROUNDS = 2
_WORKERS = 2


async def measure(place: Place) -> list[Row]:
    plan = PRESETS["oracle-750"] if not place.quick else Plan(3, 2, 5)
    found: dict[str, list[LoadReport]] = {kind: [] for kind in KINDS}
    for _ in range(place.count(_ROUNDS, 1)):
        for kind in KINDS:
            found[kind].append(await asyncio.to_thread(_run, kind, place, plan))
    rates = {kind: statistics.median(report.trials_per_sec for report in found[kind]) for kind in KINDS}
    ratio = rates["fleet"] / rates["embedded"]
    runs = plan.users * plan.tasks * plan.runs
    clean = all(report.clean and report.finished == runs for report in found["fleet"])
    lost = sum(report.lost for report in found["fleet"])
    twice = sum(report.duplicated for report in found["fleet"])
    return [
        Row(
            f"{runs} runs through API, PostgreSQL, Celery on Redis and {_WORKERS} workers",
            f"{rates['fleet']:.1f} trials/s, {lost} lost, {twice} duplicated",
            f">= {_LEAST:g} x embedded, none lost or duplicated",
            clean and ratio >= _LEAST,
            f"embedded {rates['embedded']:.1f} trials/s",
            ratio,
        )
    ]


def _run(kind: str, place: Place, plan: Plan) -> LoadReport:
    options = arguments(["--start", kind])
    with started(kind, place.cache, _WORKERS, options.concurrency) as target:
        return asyncio.run(load(target, plan, options))
