"""A world for each test, and networks for its sandboxes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from seatrial.sandboxes.network.network_set import SandboxNetworks
from seatrial.sandboxes.options import SandboxOptions
from tests.integration.network.world import World, world


@pytest.fixture
def surroundings(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


@pytest.fixture
def options(tmp_path: Path) -> SandboxOptions:
    return SandboxOptions(cache=tmp_path)


@pytest.fixture
async def networks(surroundings: World, options: SandboxOptions) -> AsyncIterator[SandboxNetworks]:
    # The set repairs itself now and then. Tests say when it looks.
    async with SandboxNetworks(options, names=surroundings.names, follow_sec=3600) as made:
        yield made
