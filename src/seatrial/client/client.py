"""``seatrial.Client`` and ``seatrial.AsyncClient``."""

from __future__ import annotations

from typing import Self

import httpx

from seatrial.client.destination import Destination
from seatrial.client.driver import AsyncIo, Driver, SyncDriver, SyncIo
from seatrial.client.events import Events
from seatrial.client.installation import Installation, Keys, Tokens
from seatrial.client.jobs import Jobs
from seatrial.client.tasks import Datasets, Tasks
from seatrial.client.triage import Links, Triage
from seatrial.client.trials import Trials


class _Verbs[D]:
    """All methods, in groups."""

    def __init__(self, driver: D, url: str) -> None:
        self._driver = driver
        self.url = url
        """The service's address, without credentials."""
        self.tasks = Tasks(driver)
        self.datasets = Datasets(driver)
        self.jobs = Jobs(driver)
        self.trials = Trials(driver)
        self.triage = Triage(driver)
        self.links = Links(driver)
        self.events = Events(driver)
        self.installation = Installation(driver)
        self.tokens = Tokens(driver)
        self.keys = Keys(driver)


class Client(_Verbs[SyncDriver]):
    """A synchronous client. Threads may share it.

    ``url`` and ``token`` default to ``SEATRIAL_SERVER`` and ``SEATRIAL_SERVER_TOKEN``. ``timeout`` applies to one
    answer; ``patience`` is how long a stream tries to reconnect while the service is down.
    """

    def __init__(
        self,
        url: str = "",
        token: str = "",
        *,
        timeout: float = 30.0,
        patience: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        to = Destination.of(url, token)
        super().__init__(SyncDriver(SyncIo(to, timeout, transport), patience), str(to.url))

    def close(self) -> None:
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncClient(_Verbs[Driver]):
    """An asynchronous client: methods are awaited, lists and streams are iterated with ``async for``."""

    def __init__(
        self,
        url: str = "",
        token: str = "",
        *,
        timeout: float = 30.0,
        patience: float = 60.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        to = Destination.of(url, token)
        super().__init__(Driver(AsyncIo(to, timeout, transport), patience), str(to.url))

    async def close(self) -> None:
        await self._driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
