"""FAULTS 5: Redis forgets everything, is away and comes back while 200 trials are queued. The store is the truth."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from seatrial.domain.trial import Outcome
from seatrial.testing.redis import RedisServer
from seatrial.wiring import open_installation
from tests.databases import PostgresDatabases
from tests.faults.checker import Checker
from tests.faults.trial_worker import FakeWorker, Setup
from tests.live_processes import submit

pytestmark = pytest.mark.postgres

_TRIALS = 200


@pytest.fixture
def broker() -> Iterator[RedisServer]:
    """One that may be stopped."""
    with RedisServer() as server:
        yield server


@pytest.fixture
async def setup(tmp_path: Path, postgres_databases: PostgresDatabases, broker: RedisServer) -> Setup:
    return Setup(
        home=str(tmp_path / "home"),
        diary=str(tmp_path / "diary"),
        gate=str(tmp_path / "gate"),
        database_url=await postgres_databases.fresh(),
        broker_url=broker.url,
        capacity=8,
    )


@asynccontextmanager
async def two_workers(setup: Setup) -> AsyncIterator[None]:
    workers = [FakeWorker.launch(setup) for _ in range(2)]
    try:
        for worker in workers:
            await asyncio.to_thread(worker.until_ready)
        yield
    finally:
        for worker in workers:
            worker.end()


@pytest.mark.parametrize("how", ["flushed", "restarted"])
async def test_nothing_is_lost(setup: Setup, broker: RedisServer, how: str) -> None:
    async with open_installation(setup.settings()) as installation, two_workers(setup):
        job = await submit(installation, _TRIALS)
        async with asyncio.timeout(120):
            while sum((await installation.store.trials.running_by_worker()).values()) < 16:
                await asyncio.sleep(0.05)
        if how == "flushed":
            assert await asyncio.to_thread(broker.command, "FLUSHALL") == b"+OK"
        else:
            await asyncio.to_thread(broker.stop)
        Path(setup.gate).touch()
        later = await submit(installation, 4)  # taken while nobody can be told
        checker = Checker(installation)
        if how == "restarted":
            async with asyncio.timeout(120):
                while sum(trial.outcome is not None for trial in await checker.trials(job)) < _TRIALS // 2:
                    await asyncio.sleep(0.1)
            await asyncio.to_thread(broker.start)
        await checker.ended(job, later)
        await checker.check(job, later)
        trials = [*await checker.trials(job), *await checker.trials(later)]
        assert {(trial.outcome, trial.try_number) for trial in trials} == {(Outcome.PASSED, 1)}
