"""Wakes the workers of all machines through PostgreSQL: ``NOTIFY`` announces, ``LISTEN`` waits.

One connection of its own, opened when it is first needed. While the server is away nobody is woken; workers ask the
store regularly anyway, and the next wait connects again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

import asyncpg
from sqlalchemy.engine import make_url

log = logging.getLogger(__name__)

_CHANNEL = "seatrial_work"
_CONNECT_SEC = 5.0
_REFUSED_SEC = 1.0
"""After a failed connection, the next one is tried this much later."""
_AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError)
"""The server is away, full, or the connection broke."""


class PostgresWakeUp:
    """One per process and event loop."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._announced = asyncio.Event()
        self._opening = asyncio.Lock()
        self._connection: asyncpg.Connection | None = None
        self._listening: asyncio.Task[None] | None = None

    async def announce(self) -> None:
        """Wakes the workers of this process at once, and all others through the server. Raises nothing: whoever is not
        woken asks the store a moment later."""
        self._announced.set()
        with contextlib.suppress(*_AWAY):
            connection = await self._open()
            await connection.execute(f"NOTIFY {_CHANNEL}", timeout=_CONNECT_SEC)

    async def wait(self, timeout: float) -> None:
        """Also returns for an announcement between the last ``wait`` and this one, and once after each connection."""
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen(), name="wake-ups")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._announced.wait()
        self._announced.clear()

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        if self._connection is not None:
            await self._connection.close(timeout=_CONNECT_SEC)

    async def _listen(self) -> None:
        """Makes sure that announcements of others arrive. Without a server there is nothing to hear."""
        try:
            await self._open()
        except _AWAY as fault:
            log.debug("No wake-ups from PostgreSQL: %s", fault)
            await asyncio.sleep(_REFUSED_SEC)

    async def _open(self) -> asyncpg.Connection:
        async with self._opening:
            if self._connection is None or self._connection.is_closed():
                connection = await asyncpg.connect(self._url, timeout=_CONNECT_SEC)
                await connection.add_listener(_CHANNEL, _setter(self._announced))
                self._connection = connection
                self._announced.set()  # something may have been announced while nobody listened
            return self._connection


def _setter(event: asyncio.Event) -> Callable[..., None]:
    def heard(*_: object) -> None:
        event.set()

    return heard
