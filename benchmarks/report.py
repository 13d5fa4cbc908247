"""How long the report of a job takes: from the store's rows to every number, with both intervals.

The time is that of the processor, because other work on the machine must not decide whether a limit is met.
"""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from benchmarks.place import Place
from benchmarks.row import Row, shown
from seatrial.adapters.store_sql.database import database_at
from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.adapters.store_sql.tables import trials
from seatrial.charts.draw import Subject
from seatrial.charts.report_page import report_page
from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.reports.fact import TrialFact
from seatrial.domain.reports.report import report
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Outcome, TrialState
from seatrial.engine.reports.configurations import agents_by_label
from seatrial.engine.reports.listing import JobListing
from seatrial.engine.reports.reporting import report_job
from seatrial.engine.reports.trend import trend_of

_NOW = datetime(2026, 1, 2, tzinfo=UTC)
_SHAPES = (((89, 5, 6), 1.0), ((2000, 10, 5), 5.0))
"""Tasks, attempts and configurations, and the limit in seconds."""


async def measure(place: Place) -> list[Row]:
    rows = []
    for (tasks, attempts, configurations), limit in _SHAPES:
        spec = _spec(place.count(tasks, min(tasks, 100)), attempts, configurations)
        size = f"{len(spec.tasks)} tasks x {attempts} x {configurations}"
        rows.append(_row(f"report over {size}, numbers alone", _numbers_alone(spec), limit))
        report_sec, page_sec = await _from_store(place, spec)
        rows.append(_row(f"report over {size}, from SQLite", report_sec, limit))
        rows.append(_row(f"report over {size}, from SQLite, with every picture as HTML", page_sec, limit))
    return rows


def _row(what: str, seconds: float, limit: float) -> Row:
    return Row(what, shown(seconds), f"<= {limit:g} s", seconds <= limit)


def _spec(tasks: int, attempts: int, configurations: int) -> JobSpec:
    refs = tuple(TaskRef(name=f"task-{number}", digest=f"sha256:{number:064x}") for number in range(tasks))
    agents = tuple(AgentSpec(name="terminus-2", model=f"provider/model-{index}") for index in range(configurations))
    return JobSpec(tasks=refs, agents=agents, attempts=attempts, dataset="measured")


def _numbers_alone(spec: JobSpec) -> float:
    """Scores near 1, where the bootstrap is used however many tasks there are."""
    rng = random.Random(1)
    facts = [
        TrialFact(
            task=new.task.name,
            configuration=f"{new.agent} / {new.model}",
            attempt=new.attempt,
            digest=new.task.digest,
            **_ended(rng),
        )
        for new in plan(spec)
    ]
    began = time.process_time()
    report(facts, spec=spec)
    return time.process_time() - began


async def _from_store(place: Place, spec: JobSpec) -> tuple[float, float]:
    """Seconds to the numbers, and to the HTML with its pictures."""
    url = f"sqlite:///{place.scratch}/report-{len(spec.tasks)}.db"
    await upgrade(url)
    rng = random.Random(1)
    async with SqlStore.at(url) as store:
        job = await store.jobs.create(spec, tuple(plan(spec)), _NOW)
    await _end_all(url, rng)
    async with SqlStore.at(url) as store:
        began = time.process_time()
        found = await report_job(store.trials, job)
        numbers_at = time.process_time()
        trend = await trend_of(store.jobs, JobListing(store.jobs), job)
        report_page(Subject(job, found, trend, agents_by_label(job)))
        return numbers_at - began, time.process_time() - began


async def _end_all(url: str, rng: random.Random) -> None:
    """Straight in the table: running them would take days, and what is measured is reading."""
    database = database_at(url)
    await database.open()
    try:
        ids = await database.read(lambda connection: list(connection.execute(sa.select(trials.c.id)).scalars()))
        rows = [{"trial": trial_id, **_columns(rng)} for trial_id in ids]
        update = sa.update(trials).where(trials.c.id == sa.bindparam("trial"))
        await database.write(lambda connection: connection.execute(update, rows).rowcount)
    finally:
        await database.close()


def _columns(rng: random.Random) -> dict[str, Any]:
    ended = _ended(rng)
    spent = {f"spent_{name}": ended[name] for name in ("seconds", "input_tokens", "output_tokens", "cost_usd")}
    names = ("outcome", "cause", "reward", "seconds", "input_tokens", "output_tokens", "cost_usd")
    return {"state": TrialState.ENDED, "attempt": 1, "marks": "", **{name: ended[name] for name in names}, **spent}


def _ended(rng: random.Random) -> dict[str, Any]:
    outcome = rng.choices((Outcome.PASSED, Outcome.FAILED, Outcome.ERROR), (96, 3, 1))[0]
    return {
        "outcome": outcome,
        "cause": Cause.LLM if outcome is Outcome.ERROR else None,
        "reward": float(outcome is Outcome.PASSED) if outcome.graded else None,
        "seconds": rng.uniform(20, 600),
        "input_tokens": rng.randrange(100_000),
        "output_tokens": rng.randrange(10_000),
        "cost_usd": rng.uniform(0.1, 2),
    }
