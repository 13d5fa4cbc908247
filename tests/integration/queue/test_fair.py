"""Jobs take turns and suspects keep their company however workers are woken: as with the local wake-up."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from pathlib import Path

import pytest

from seatrial.domain.fleet.worker_death import Death
from seatrial.domain.result import Result
from seatrial.domain.trial import Cause, Outcome
from seatrial.ports.runner import Order, Progress
from seatrial.ports.store.trials import Loss
from seatrial.settings import Settings
from seatrial.testing.fake_runner import PASS
from seatrial.testing.redis import RedisServer
from seatrial.wiring import Installation, assemble_worker, open_installation
from tests.integration.queue.fleet import ended, settings_of, submit

LOST = Result(outcome=Outcome.ERROR, cause=Cause.WORKER_LOST)


class Company:
    """A runner that notes in which order trials begin, and how many others run beside each."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.beside: dict[int, int] = {}
        self._running: set[int] = set()

    async def run(self, order: Order, progress: Progress) -> Result:
        trial = order.trial.id
        self.order.append(trial)
        self._running.add(trial)
        for one in self._running:
            self.beside[one] = max(self.beside.get(one, 0), len(self._running) - 1)
        await asyncio.sleep(0.02)
        self._running.discard(trial)
        return PASS


async def make_suspects(installation: Installation, count: int) -> None:
    """A worker crashed that held the first trials together."""
    store, clock = installation.store.trials, installation.clock
    held = await store.claim("crashed", timedelta(minutes=1), count, clock())
    losses = [Loss(trial_id=one.id, try_number=one.try_number, result=LOST, last=False) for one in held]
    assert len(await store.lose_worker("crashed", losses, Death.CRASH, clock())) == count


async def observed(settings: Settings, capacity: int, suspects: int) -> Company:
    """Three jobs of different sizes, all queued before the worker starts."""
    company = Company()
    async with open_installation(settings) as installation:
        first = await submit(installation, suspects or 5)
        if suspects:
            await make_suspects(installation, suspects)
        jobs = [first, await submit(installation, 5), await submit(installation, 2)]
        work = asyncio.create_task(assemble_worker(installation, company, capacity).run())
        for job in jobs:
            await ended(installation, job)
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work
    return company


async def settings_for(kind: str, place: Path, request: pytest.FixtureRequest) -> Settings:
    more = {}
    if kind != "local":
        more["database_url"] = await request.getfixturevalue("postgres_databases").fresh()
    if kind == "celery":
        server: RedisServer = request.getfixturevalue("redis_server")
        more["broker_url"] = server.url
    return settings_of(place / kind, **more)


@pytest.mark.postgres
@pytest.mark.parametrize("kind", [pytest.param("postgres", marks=pytest.mark.long), "celery"])
async def test_claims_come_in_the_order_of_the_local_wake_up(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    local = await observed(settings_of(tmp_path / "local"), capacity=1, suspects=0)
    other = await observed(await settings_for(kind, tmp_path, request), capacity=1, suspects=0)
    assert other.order == local.order and len(local.order) == 12
    assert local.order != sorted(local.order), "jobs take turns"


@pytest.mark.postgres
@pytest.mark.parametrize("kind", [pytest.param("postgres", marks=pytest.mark.long), "celery"])
async def test_suspects_stay_alone_as_with_the_local_wake_up(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    local = await observed(settings_of(tmp_path / "local"), capacity=4, suspects=2)
    other = await observed(await settings_for(kind, tmp_path, request), capacity=4, suspects=2)
    suspected = sorted(local.beside)[:2]
    assert [other.beside[trial] for trial in suspected] == [local.beside[trial] for trial in suspected] == [0, 0]
    assert sorted(other.order) == sorted(local.order) and len(local.order) == 9
