"""FAULTS 6: the database is away for longer than a lease, and healthy trials go on as if nothing had happened."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from seatrial.domain.trial import Outcome, TrialState
from seatrial.engine.clock import system_clock
from seatrial.ports.store import Trouble
from seatrial.testing.postgres import PostgresServer
from seatrial.testing.redis import RedisServer
from seatrial.wiring import Installation, open_installation
from tests.faults.checker import Checker
from tests.faults.trial_worker import FakeWorker, Setup, lines_of
from tests.live_processes import submit
from tests.waiting import eventually

LEASE_SEC = 12.0
AWAY_SEC = 15.0
SWEEP_SEC = 0.5
SEVERAL_SWEEPS = timedelta(seconds=4 * SWEEP_SEC)
OTHER_NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


class Outages:
    """Of one store: the server is killed or hangs, or somebody holds the lock of the file."""

    def __init__(self, setup: Setup, server: PostgresServer | None) -> None:
        self.setup = setup
        self._server = server

    @asynccontextmanager
    async def during(self, how: str) -> AsyncIterator[None]:
        if how == "locked":
            path = Path(self.setup.home) / "seatrial.db"
            with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as other:
                other.execute("BEGIN IMMEDIATE")
                yield
            return
        assert self._server is not None
        await asyncio.to_thread(self._server.stop_hard if how == "stopped" else self._server.pause)
        yield
        await asyncio.to_thread(self._server.start if how == "stopped" else self._server.resume)


def setup_in(place: Path) -> Setup:
    return Setup(
        home=str(place / "home"),
        diary=str(place / "diary"),
        gate=str(place / "gate"),
        lease_sec=LEASE_SEC,
        heartbeat_sec=0.5,
        reap_sec=SWEEP_SEC,
    )


@pytest.fixture
async def setup(server: PostgresServer, redis_server: RedisServer, tmp_path: Path) -> Setup:
    url = await server.create_database("away")
    return replace(setup_in(tmp_path), database_url=url, broker_url=redis_server.url)


@pytest.fixture
def outages(how: str, request: pytest.FixtureRequest, tmp_path: Path) -> Outages:
    if how == "locked":
        return Outages(setup_in(tmp_path), None)
    return Outages(request.getfixturevalue("setup"), request.getfixturevalue("server"))


FLEET = [pytest.param(how, marks=pytest.mark.postgres) for how in ("stopped", "paused")]


@asynccontextmanager
async def workers(setups: list[tuple[Setup, list[str]]]) -> AsyncIterator[list[FakeWorker]]:
    started = [FakeWorker.launch(setup, around) for setup, around in setups]
    try:
        for worker in started:
            await asyncio.to_thread(worker.until_ready)
        yield started
    finally:
        for worker in started:
            worker.end()


async def begun(setup: Setup, count: int) -> None:
    async with asyncio.timeout(120):
        while not Path(setup.diary).exists() or len(Path(setup.diary).read_text().splitlines()) < count:
            await asyncio.sleep(0.05)


async def heard_again(installation: Installation, count: int) -> None:
    """Waits until this many workers live and each has looked for lost trials several times from now on."""

    async def last_beats() -> dict[str, datetime]:
        return {row.worker: row.seen_at for row in await installation.store.workers.all()}

    async with asyncio.timeout(120):
        while len(before := await last_beats()) < count:
            await asyncio.sleep(0.05)
        while any(seen - before[worker] < SEVERAL_SWEEPS for worker, seen in (await last_beats()).items()):
            await asyncio.sleep(0.05)


async def leases_are_fresh(installation: Installation, count: int) -> bool:
    running = await installation.store.trials.running_by_worker()
    late = await installation.store.trials.expired(system_clock())
    return sum(running.values()) == count and not late


@pytest.mark.parametrize("how", ["locked", *FLEET])
async def test_healthy_trials_survive_an_outage_longer_than_their_lease(outages: Outages, how: str) -> None:
    setup = outages.setup
    async with open_installation(setup.settings()) as installation:
        job = await submit(installation, 8)
        # One of them in another PID namespace: it cannot be known to live, only its lease tells.
        async with workers([(setup, []), (setup, OTHER_NAMESPACE)]):
            await begun(setup, 8)
            async with outages.during(how):
                await asyncio.sleep(AWAY_SEC)
            async with asyncio.timeout(120):
                while not await leases_are_fresh(installation, 8):
                    await asyncio.sleep(0.1)
            await asyncio.sleep(LEASE_SEC)  # long enough for a reaper that counts wrongly
            Path(setup.gate).touch()
            checker = Checker(installation)
            await checker.ended(job)
        await checker.check(job, model_calls=len(lines_of(setup.diary)))
        assert [(trial.outcome, trial.try_number) for trial in await checker.trials(job)] == [(Outcome.PASSED, 1)] * 8


@pytest.mark.postgres
async def test_a_worker_that_died_meanwhile_is_still_found(server: PostgresServer, setup: Setup) -> None:
    """The twin: after the outage its trials are taken over, a lease later."""
    async with open_installation(setup.settings()) as installation:
        job = await submit(installation, 4)
        async with workers([(setup, OTHER_NAMESPACE)]) as [dies]:
            await begun(setup, 4)
            async with workers([(setup, [])]):
                await asyncio.to_thread(server.stop_hard)
                dies.end()
                await asyncio.sleep(AWAY_SEC)
                await asyncio.to_thread(server.start)
                await begun(setup, 8)
                Path(setup.gate).touch()
                checker = Checker(installation)
                await checker.ended(job)
        await checker.check(job)
        assert [(trial.outcome, trial.try_number) for trial in await checker.trials(job)] == [(Outcome.PASSED, 2)] * 4


@pytest.mark.postgres
async def test_namespaces_with_one_host_name_leave_each_others_trials_alone(setup: Setup) -> None:
    """Its neighbours of other namespaces see no process of its number, and let it work."""
    patient = replace(setup, lease_sec=60, capacity=2)
    async with open_installation(patient.settings()) as installation:
        job = await submit(installation, 2)
        async with workers([(patient, OTHER_NAMESPACE)]):
            await begun(setup, 2)
            open_at_once = replace(patient, gate="")
            async with workers([(open_at_once, OTHER_NAMESPACE), (open_at_once, [])]):
                await heard_again(installation, 3)
                await Checker(installation).ended(await submit(installation, 20))
                await heard_again(installation, 3)
                assert len({row.host for row in await installation.store.workers.all()}) == 1
                checker = Checker(installation)
                held = await checker.trials(job)
                assert [(trial.state, trial.try_number) for trial in held] == [(TrialState.RUNNING, 1)] * 2
            Path(setup.gate).touch()
            await checker.ended(job)
        await checker.check(job)


@pytest.mark.postgres
async def test_an_outage_is_told_as_a_trouble_and_forgotten_when_it_is_over(
    server: PostgresServer, setup: Setup
) -> None:
    async with open_installation(setup.settings()) as installation, workers([(setup, [])]) as [worker]:

        async def troubles() -> list[Trouble]:
            rows = await installation.store.workers.all()
            return [trouble for row in rows for trouble in row.troubles]

        await asyncio.to_thread(server.stop_hard)
        await eventually(lambda: "Heartbeat failed" in worker.log.read_text(), "the outage is noticed")
        await asyncio.to_thread(server.start)
        await eventually(lambda: "Heartbeat works again" in worker.log.read_text(), "its end is noticed")
        async with asyncio.timeout(60):
            while await troubles():
                await asyncio.sleep(0.1)
