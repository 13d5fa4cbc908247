"""Redis is away: the service takes jobs, workers find trials in the store, and everybody is told."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

import pytest

from seatrial.engine.readiness import Readiness
from seatrial.testing.redis import RedisServer
from seatrial.wiring import Installation, open_installation, recover_in_background
from tests.integration.queue.fleet import Gate, ended, fleet, settings_of, submit
from tests.waiting import eventually


async def troubles(installation: Installation) -> set[str]:
    (worker,) = await installation.store.workers.all()
    return {trouble.duty for trouble in worker.troubles}


def readiness(installation: Installation) -> Readiness:
    there = installation
    return Readiness(
        *(there.store, there.wake_up, there.blobs, there.clock, "ready/test", timedelta(seconds=60)),
        worker_is_dead=lambda name: False,
        shortage=lambda: "",
    )


async def test_a_service_without_workers_tells_it_too(
    tmp_path: Path, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    redis_server.stop()
    settings = settings_of(tmp_path, redis_server.url)
    async with open_installation(settings) as installation, recover_in_background(installation):
        await submit(installation, 1)
        await eventually(lambda: "Queue failed (1 times): The broker redis://127.0.0.1" in caplog.text, "it is told")
        redis_server.start()
        await eventually(lambda: "Queue works again." in caplog.text, "it is over")


async def test_trials_run_it_is_told_and_it_ends_by_itself(
    tmp_path: Path, redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    redis_server.stop()
    gate = Gate()
    gate.opened.set()
    async with fleet(settings_of(tmp_path, redis_server.url), gate) as installation:
        await ended(installation, await submit(installation, 6))

        async def told() -> bool:
            return "queue" in await troubles(installation)

        await eventually(told, "the heartbeat tells it")
        assert f"Queue failed (1 times): The broker redis://127.0.0.1:{redis_server.port}/0 is away" in caplog.text
        parts = {part.name: part for part in await readiness(installation).parts()}
        assert parts["queue"].ok and "ask the store" in parts["queue"].detail
        redis_server.start()

        async def well() -> bool:
            return not await troubles(installation)

        await eventually(well, "the trouble is over")
        assert "Queue works again." in caplog.text
        parts = {part.name: part for part in await readiness(installation).parts()}
        assert parts["queue"].detail == ""
        await ended(installation, await submit(installation, 2))
    assert len(gate.began) == 8 and len(set(gate.began)) == 8
