"""What may happen to hints in Redis. Fault tests of any configuration with a broker can use it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from redis.asyncio import Redis
from redis.exceptions import RedisError

from seatrial.testing.redis import RedisServer
from tests.waiting import eventually

QUEUE = "seatrial"


async def repeat_hints(broker_url: str, times: int) -> int:
    """Delivers a hint that waits ``times`` times more, byte for byte. Returns how many hints wait then."""
    async with Redis.from_url(broker_url) as client:
        await eventually(lambda: client.llen(QUEUE), "a hint waits")
        (message,) = await client.lrange(QUEUE, 0, 0)
        return int(await client.lpush(QUEUE, *[message] * times))


async def no_hint_waits(broker_url: str) -> bool:
    async with Redis.from_url(broker_url) as client:
        return not await client.llen(QUEUE) and not await client.hlen("unacked")


async def lose_everything(server: RedisServer, away_sec: float = 0.0) -> None:
    """Deletes all that Redis holds, stops it hard, and starts it again at the same address."""
    with suppress(RedisError):
        async with Redis.from_url(server.url) as client:
            await client.flushall()
    await asyncio.to_thread(server.stop)
    await asyncio.sleep(away_sec)
    await asyncio.to_thread(server.start)
