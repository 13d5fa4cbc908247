"""Two machines whose clocks differ by an hour share PostgreSQL: neither takes the other's trials for lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from seatrial.engine.clock import Clock, StoreClock, system_clock
from seatrial.wiring import Installation, assemble_worker, open_installation
from tests.databases import PostgresDatabases
from tests.integration.queue.fleet import Gate, ended, settings_of, submit
from tests.waiting import eventually

pytestmark = pytest.mark.postgres
LEASE = timedelta(seconds=10)


def wrong_by(hours: float) -> Clock:
    return lambda: system_clock() + timedelta(hours=hours)


@asynccontextmanager
async def machine(
    home: Path, url: str, clock: Clock, gate: Gate, capacity: int = 2, reap_sec: float = 0.2
) -> AsyncIterator[Installation]:
    settings = settings_of(
        home, database_url=url, lease_sec=LEASE.total_seconds(), heartbeat_sec=0.2, reap_sec=reap_sec
    )
    async with open_installation(settings, clock) as installation:
        if isinstance(clock, StoreClock):
            await clock.look(lambda: _now(installation))
        work = asyncio.create_task(assemble_worker(installation, gate, capacity).run())
        try:
            yield installation
        finally:
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work


async def _now(installation: Installation) -> datetime | None:
    return (await installation.store.facts()).now


async def two_machines(stack: AsyncExitStack, place: Path, url: str, clocks: list[Clock], gate: Gate) -> Installation:
    """The first one holds trial 1. A worker that is really gone held trial 2. Only the second one looks for lost
    trials, and it has room for both."""
    first = await stack.enter_async_context(machine(place, url, clocks[0], gate, capacity=1, reap_sec=3600))
    await submit(first, 1)
    await eventually(lambda: len(gate.began) == 1, "the first machine runs it")
    await submit(first, 1)
    assert len(await first.store.trials.claim("gone", LEASE, 1, first.clock())) == 1
    return await stack.enter_async_context(machine(place, url, clocks[1], gate))


async def test_the_trial_stays_where_it_is_and_the_odd_machine_says_so(
    tmp_path: Path, postgres_databases: PostgresDatabases, caplog: pytest.LogCaptureFixture
) -> None:
    gate, url = Gate(), await postgres_databases.fresh()
    async with AsyncExitStack() as stack:
        clocks: list[Clock] = [StoreClock(), StoreClock(own=wrong_by(1))]
        second = await two_machines(stack, tmp_path, url, clocks, gate)

        async def said() -> bool:
            rows = await second.store.workers.all()
            return any("3600 s ahead of" in trouble.error for row in rows for trouble in row.troubles)

        await eventually(said, "the heartbeat tells it")
        assert "Clock failed (1 times): The clock of this machine is 3600 s ahead of the database's." in caplog.text
        await eventually(lambda: len(gate.began) == 2, "the trial of the worker that is gone runs again")
        gate.opened.set()
        await ended(second, await second.store.jobs.get(1))
        assert len(await second.store.trials.tries(1)) == 1
    assert gate.began == [1, 2]


async def test_by_the_clocks_of_the_machines_it_would_be_taken_away(
    tmp_path: Path, postgres_databases: PostgresDatabases
) -> None:
    """The positive control: the same with clocks that do not ask the store."""
    gate, url = Gate(), await postgres_databases.fresh()
    async with AsyncExitStack() as stack:
        await two_machines(stack, tmp_path, url, [system_clock, wrong_by(1)], gate)
        await eventually(lambda: gate.began.count(1) == 2, "the second machine takes it for lost")
        gate.opened.set()
