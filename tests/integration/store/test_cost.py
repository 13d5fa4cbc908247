"""What runs once per trial must not grow with the trials that have ended: no statement may walk through a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from seatrial.adapters.store_sql.database import database_at
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.domain.job import plan
from seatrial.domain.trial import Outcome, Phase, TrialState
from seatrial.ports.store import Page, PhaseEntry, Store, TrialFilter
from tests.contracts.store.samples import MINUTE, NOON, a_spec, faulty, passed, submit
from tests.counted_work import counted_work

PARTIAL = ("INDEX ix_trials_running", "INDEX ix_trials_suspected")
STEPS_PER_TRIAL = 500
"""Of Python, to create one trial of many: about twice what it takes."""
WALKS = ("SCAN trials", "SCAN attempts", "SCAN events")


@contextmanager
def statements() -> Iterator[list[tuple[str, Any]]]:
    """Everything that is executed meanwhile."""
    seen: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, ___: Any, many: bool) -> None:
        seen.append((statement, parameters[0] if many else parameters))

    sa.event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        sa.event.remove(Engine, "before_cursor_execute", note)


async def plans(url: str, seen: list[tuple[str, Any]]) -> dict[str, list[str]]:
    database = database_at(url)
    await database.open()

    def explain(connection: Connection) -> dict[str, list[str]]:
        return {
            statement: [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
            for statement, parameters in seen
            if statement.split()[0] in ("SELECT", "UPDATE", "INSERT", "DELETE")
        }

    try:
        return await database.read(explain)
    finally:
        await database.close()


async def one_of_everything(store: Store) -> None:
    job = await submit(store, trials=4, concurrency=3)
    one, two, three = await store.trials.claim("w", MINUTE, 3, NOON)
    phase = PhaseEntry(trial_id=one.id, job_id=job.id, try_number=1, phase=Phase.AGENT, at=NOON)
    await store.trials.enter_phases([phase])
    await store.trials.renew("w", {one.id: 1, two.id: 1}, MINUTE, NOON)
    await store.trials.expired(NOON)
    await store.trials.finish(one.id, 1, passed(), NOON)
    await store.trials.try_again(two.id, 1, faulty(), MINUTE, NOON)
    await store.trials.give_back(three.id, 1, NOON)
    await store.jobs.counts([job.id])
    await store.trials.get(one.id)
    await store.trials.tries(one.id)
    await store.events.read(after=3)
    await store.events.read(job_id=job.id)
    await store.events.read(trial_id=one.id)
    await store.trials.summaries(TrialFilter(job_id=job.id), Page())
    await store.trials.summaries(TrialFilter(outcomes=(Outcome.ERROR,)), Page())
    await store.trials.summaries(TrialFilter(task="hello"), Page())
    await store.trials.summaries(TrialFilter(states=(TrialState.RUNNING,)), Page())
    await store.jobs.cancel(job.id, NOON)


async def test_nothing_walks_through_a_table(sqlite_url: str) -> None:
    async with SqlStore.at(sqlite_url) as store:
        with statements() as seen:
            await one_of_everything(store)
    found = await plans(sqlite_url, seen)
    assert len(found) > 25
    for statement, plan_of_it in found.items():
        # Walking along a partial index touches open trials only.
        walks = [step for step in plan_of_it if step.startswith(WALKS) and not any(name in step for name in PARTIAL)]
        assert not walks, f"{walks} in {statement}"


async def test_a_walk_would_be_noticed(sqlite_url: str) -> None:
    found = await plans(sqlite_url, [("SELECT * FROM trials WHERE cause = ?", ("llm",))])
    assert [step.startswith(WALKS) for plan_of_it in found.values() for step in plan_of_it] == [True]


async def test_a_job_of_ten_thousand_trials_costs_little(url: str) -> None:
    """Counted in work, because other tests run beside this one. ``benchmarks`` measures the time."""
    spec = a_spec(10_000)
    planned = tuple(plan(spec))
    async with SqlStore.at(url) as store:
        with counted_work() as work, statements() as seen:
            job = await store.jobs.create(spec, planned, NOON)
        assert work.steps / 10_000 < STEPS_PER_TRIAL
        assert len(seen) < 20, "one for many trials"
        assert (await store.jobs.counts([job.id]))[job.id].queued == 10_000
        assert await store.jobs.cancel(job.id, NOON) == 10_000
        assert (await store.jobs.counts([job.id]))[job.id].cancelled == 10_000
