"""A service and a worker without sandboxes, each a process of its own, asked by the Python client over loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from seatrial import AsyncClient, Client
from tests.live_processes import api_process, worker_process


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("client") / "home"
    with api_process(home) as (address, _), worker_process(home, seconds=0.3):
        yield address


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    with Client(address) as client:
        yield client


@pytest.fixture
async def async_client(address: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(address) as client:
        yield client
