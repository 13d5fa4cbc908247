"""Wake-ups by Celery while the broker is away, comes back, or a consumer stops: they arrive again by themselves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from seatrial.adapters.wake_up_celery.app import celery_app
from seatrial.adapters.wake_up_celery.wake_up import CeleryWakeUp
from seatrial.errors import QueueUnavailable
from seatrial.testing.redis import RedisServer
from tests.waiting import LIMIT_SEC, eventually


@asynccontextmanager
async def opened(server: RedisServer, stuck_sec: float = 5.0) -> AsyncIterator[CeleryWakeUp]:
    wake_up = CeleryWakeUp(server.url, "here:1:1", stuck_sec=stuck_sec)
    try:
        yield wake_up
    finally:
        await asyncio.wait_for(wake_up.close(), LIMIT_SEC)


async def works(wake_up: CeleryWakeUp) -> bool:
    """As a worker's duty sees it."""
    try:
        await wake_up.tend()
    except QueueUnavailable:
        return False
    return True


async def woken(wake_up: CeleryWakeUp) -> None:
    """Tends as a worker does, until an announcement arrives. Only announcements end the waits."""

    async def tend_forever() -> None:
        while True:
            await works(wake_up)
            await asyncio.sleep(0.1)

    tending = asyncio.create_task(tend_forever())
    try:
        await asyncio.wait_for(wake_up.wait(3600), LIMIT_SEC)
    finally:
        tending.cancel()


async def test_after_a_restart(redis_server: RedisServer) -> None:
    async with opened(redis_server) as wake_up:
        await wake_up.announce()
        await woken(wake_up)
        redis_server.stop()
        await eventually(lambda: _is_down(wake_up), "the broker is away")
        await wake_up.announce(50)
        await asyncio.wait_for(wake_up.wait(0.1), LIMIT_SEC)
        redis_server.start()
        await eventually(lambda: works(wake_up), "the broker is back")
        await wake_up.announce()
        await woken(wake_up)


async def test_a_broker_that_is_away_at_the_start(redis_server: RedisServer) -> None:
    redis_server.stop()
    async with opened(redis_server) as wake_up:
        await wake_up.announce()
        await asyncio.wait_for(wake_up.wait(0.1), LIMIT_SEC)
        with pytest.raises(QueueUnavailable, match=f"127.0.0.1:{redis_server.port}/0 is away"):
            await wake_up.tend()
        redis_server.start()
        await wake_up.announce()
        await woken(wake_up)


async def test_it_can_be_closed_while_the_broker_is_away(redis_server: RedisServer) -> None:
    redis_server.stop()
    async with opened(redis_server) as wake_up:
        await wake_up.wait(0.1)


async def test_everything_in_redis_was_deleted(redis_server: RedisServer) -> None:
    async with opened(redis_server) as wake_up:
        await wake_up.wait(0.1)
        await wake_up.announce(20)
        redis_server.command("FLUSHALL")
        await wake_up.announce()
        await woken(wake_up)


def stop_consuming(server: RedisServer) -> None:
    celery_app(server.url).control.cancel_consumer("seatrial")


def shut_down(server: RedisServer) -> None:
    celery_app(server.url).control.shutdown()


@pytest.mark.parametrize("stop", [stop_consuming, shut_down])
async def test_a_consumer_that_stopped_is_replaced(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture, stop: Callable[[RedisServer], None]
) -> None:
    caplog.set_level(logging.WARNING)
    async with opened(redis_server) as wake_up:
        await wake_up.announce()
        await woken(wake_up)
        await wake_up.wait(0)  # the hint is used up
        await asyncio.to_thread(stop, redis_server)
        await eventually(lambda: _is_deaf(wake_up, caplog), "the watchdog noticed")
        await woken(wake_up)


async def test_a_consumer_without_work_is_left_alone(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The twin: silence alone is no reason to connect again."""
    async with opened(redis_server, stuck_sec=LIMIT_SEC) as wake_up:
        await wake_up.announce()
        await woken(wake_up)
        await wake_up.wait(0.1)  # the hint is used up
        wake_up._stuck_sec = 0.2  # only now: its start may take long
        caplog.clear()
        for _ in range(10):
            assert await works(wake_up)
            await wake_up.wait(0.1)
        assert "connects again" not in caplog.text


def _is_down(wake_up: CeleryWakeUp) -> Awaitable[bool]:
    async def asked() -> bool:
        return not await works(wake_up)

    return asked()


async def _is_deaf(wake_up: CeleryWakeUp, caplog: pytest.LogCaptureFixture) -> bool:
    await wake_up.announce()
    await works(wake_up)
    await wake_up.wait(0)
    return "connects again" in caplog.text
