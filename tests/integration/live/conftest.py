"""One API process for the tests of a module, over one home."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from seatrial.wiring import Installation, open_installation
from tests.event_source import client
from tests.live_processes import api_process, settings_of


@dataclass(frozen=True)
class Live:
    home: Path
    address: str
    api_pid: int
    installation: Installation
    http: httpx.AsyncClient


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, int]]:
    home = tmp_path_factory.mktemp("live") / "home"
    with api_process(home) as (address, pid):
        yield home, address, pid


@pytest.fixture
async def live(api: tuple[Path, str, int]) -> AsyncIterator[Live]:
    home, address, pid = api
    async with open_installation(settings_of(home)) as installation, client(address) as http:
        yield Live(home, address, pid, installation, http)
