"""``seatrial.Client`` and ``seatrial.AsyncClient``."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import httpx

from seatrial.client.driver import AsyncDriver
from seatrial.client.datasets import Datasets
from seatrial.client.destination import Destination
from seatrial.client.events import Events
from seatrial.client.installation import Installation, Keys, Tokens
from seatrial.client.jobs import Jobs
from seatrial.client.sync_driver import SyncDriver
from seatrial.client.tasks import Tasks
from seatrial.client.trials import Trials


class _Verbs[Driver]:
    """All methods, in groups."""

    def __init__(self, driver: Driver, url: str) -> None:
        self.url = url
        """The service's address, without credentials."""
        self.tasks = Tasks(driver)
        self.datasets = Datasets(driver)
        self.jobs = Jobs(driver)
        self.trials = Trials(driver)
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
        self._driver = SyncDriver(to, timeout, patience, transport)
        super().__init__(self._driver, str(to.url))

    def close(self) -> None:
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(_Verbs[AsyncDriver]):
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
        self._driver = AsyncDriver(to, timeout, patience, transport)
        super().__init__(self._driver, str(to.url))

    async def close(self) -> None:
        await self._driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
