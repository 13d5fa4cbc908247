"""Wakes the workers of all machines through PostgreSQL: ``NOTIFY`` announces, ``LISTEN`` waits.

One connection of its own, opened when it is first needed. While the server is away no worker is woken; workers ask the
store regularly anyway, and the next wait connects again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

import asyncpg
from sqlalchemy.engine import make_url

from seatrial.domain.trial import Trial
from seatrial.errors import QueueUnavailable
from seatrial.ports.store import Heartbeat

log = logging.getLogger(__name__)

_CHANNEL = "seatrial_work"
_PATIENCE_SEC = 5.0
_REFUSED_SEC = 1.0
"""After a failed connection, the next one is tried this much later."""
_NAMED = {"application_name": "seatrial"}
_OF_SQLALCHEMY = ("async_", "prepared_statement_")
"""Options of a URL that the driver itself does not know."""
_AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError)
"""The server is away, full, or the connection broke."""


class PostgresWakeUp:
    """One per process and event loop."""

    def __init__(self, url: str, patience_sec: float = _PATIENCE_SEC) -> None:
        """Takes the URL of the store, with the options that SQLAlchemy's driver knows. A server that does not answer
        within ``patience_sec`` is away."""
        self._patience_sec = patience_sec
        parsed = make_url(url)
        _, options = parsed.get_dialect()().create_connect_args(parsed)
        self._options = {name: value for name, value in options.items() if not name.startswith(_OF_SQLALCHEMY)}
        self._announced = asyncio.Event()
        self._opening = asyncio.Lock()
        self._asking = asyncio.Lock()
        self._connection: asyncpg.Connection | None = None
        self._listening: asyncio.Task[None] | None = None

    async def announce(self, trials: int = 1) -> None:
        """Wakes the workers of this process at once, and all others through the server."""
        self._announced.set()
        with contextlib.suppress(*_AWAY):
            await self._ask(f"NOTIFY {_CHANNEL}")

    async def wait(self, timeout: float) -> None:
        """Also returns for an announcement between the last ``wait`` and this one, and once after each connection."""
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen(), name="wake-ups")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._announced.wait()
        self._announced.clear()

    def runs(self, trial: Trial) -> None:
        pass

    def ended(self, trial: Trial) -> None:
        pass

    async def tend(self, about: Heartbeat | None = None) -> None:
        """Notices a connection that was cut silently. The next one is opened at once."""
        try:
            await self._ask("SELECT 1")
        except _AWAY as fault:
            broken, self._connection = self._connection, None
            if broken is not None:
                broken.terminate()
            raise QueueUnavailable(f"PostgreSQL sends no wake-ups: {fault or 'no answer'}") from fault

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        if self._connection is not None:
            with contextlib.suppress(*_AWAY):
                await self._connection.close(timeout=self._patience_sec)

    async def _ask(self, statement: str) -> None:
        """One at a time: the driver refuses a second operation on a connection."""
        async with self._asking:
            connection = await self._open()
            await connection.execute(statement, timeout=self._patience_sec)

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
                connection = await asyncpg.connect(timeout=self._patience_sec, server_settings=_NAMED, **self._options)
                await connection.add_listener(_CHANNEL, _setter(self._announced))
                self._connection = connection
                self._announced.set()  # something may have been announced while nobody listened
            return self._connection


def _setter(event: asyncio.Event) -> Callable[..., None]:
    def heard(*_: object) -> None:
        event.set()

    return heard
