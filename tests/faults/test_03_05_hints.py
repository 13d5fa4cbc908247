"""FAULTS 3 and 5: hints that come fifty times, and a broker that loses all of them. The store decides, so each trial
runs once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.testing.redis import RedisServer
from seatrial.wiring import open_installation
from tests.databases import PostgresDatabases, postgres_databases, postgres_server  # noqa: F401
from tests.faults.checker import Checker
from tests.faults.hints import lose_everything, no_hint_waits, repeat_hints
from tests.faults.trial_worker import FakeWorker, Setup
from tests.live_processes import submit
from tests.waiting import eventually

pytestmark = pytest.mark.postgres


@pytest.fixture
def broker() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
async def setup(tmp_path: Path, broker: RedisServer, postgres_databases: PostgresDatabases) -> Setup:  # noqa: F811
    url = await postgres_databases.fresh()
    place = {"home": str(tmp_path / "home"), "diary": str(tmp_path / "diary")}
    return Setup(**place, database_url=url, broker_url=broker.url, capacity=4, seconds=0.1, lease_sec=60)


@asynccontextmanager
async def workers(setup: Setup, count: int) -> AsyncIterator[Sequence[FakeWorker]]:
    hired = [FakeWorker.launch(setup) for _ in range(count)]
    try:
        for worker in hired:
            await asyncio.to_thread(worker.until_ready)
        yield hired
    finally:
        for worker in hired:
            worker.end()


def executions(setup: Setup) -> Counter[int]:
    """How often each trial began."""
    diary = Path(setup.diary)
    lines = diary.read_text().splitlines() if diary.exists() else []
    return Counter(int(line.split()[0]) for line in lines)


async def test_the_same_message_fifty_times_is_one_execution(setup: Setup, broker: RedisServer) -> None:
    async with open_installation(setup.settings()) as installation:
        job = await submit(installation, 1)
        assert await repeat_hints(broker.url, 49) >= 50
        async with workers(setup, 2):
            checker = Checker(installation)
            await checker.ended(job)
            await eventually(lambda: no_hint_waits(broker.url), "every repetition was taken")
        assert executions(setup) == {(await checker.trials(job))[0].id: 1}
        await checker.check(job)


async def test_everything_in_the_broker_is_lost_while_200_are_queued(setup: Setup, broker: RedisServer) -> None:
    gate = Path(setup.home).with_name("gate")
    async with open_installation(setup.settings()) as installation:
        async with workers(replace(setup, gate=str(gate)), 2):
            job = await submit(installation, 200)
            await eventually(lambda: executions(setup).total() == 8, "both workers have all they can hold")
            await lose_everything(broker)
            gate.touch()
            await eventually(lambda: executions(setup).total() > 8, "it goes on")
            checker = Checker(installation)
            await checker.ended(job)
        assert len(executions(setup)) == 200 and set(executions(setup).values()) == {1}
        await checker.check(job)
