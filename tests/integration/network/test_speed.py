"""How long a sandbox waits for its network. Measures, and so wants the machine for itself."""

from __future__ import annotations

import asyncio

import pytest
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.sandboxes.network.network_set import SandboxNetworks
from tests.integration.network.world import World

pytestmark = pytest.mark.sandbox


@pytest.mark.parametrize("mode", [NetworkMode.NO_NETWORK, NetworkMode.PUBLIC])
async def test_acquiring_is_quick_once_warm(networks: SandboxNetworks, surroundings: World, mode: NetworkMode) -> None:
    """The bound is loose, for slow machines; about one millisecond is usual."""
    await (await networks.acquire(NetworkPolicy(network_mode=NetworkMode.PUBLIC), "warm")).release()
    loop = asyncio.get_running_loop()
    start = loop.time()
    for turn in range(20):
        await (await networks.acquire(NetworkPolicy(network_mode=mode), f"turn {turn}")).release()
    assert (loop.time() - start) / 20 < 0.05
