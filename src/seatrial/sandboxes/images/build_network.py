"""The network that builds get: the public internet, and nothing of this machine or its neighbours.

``buildah`` borrows a line for each build. Where none can be had the build runs in the machine's own network, and its
log says so and why.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from seatrial.domain.frozen import Frozen
from seatrial.errors import SeatrialError
from seatrial.sandboxes.options import SandboxOptions


class BuildLine(Frozen):
    """What one build is connected to."""

    description: str
    namespace: Path | None = None
    """``None`` for the machine's own network."""
    resolv_conf: str = ""


class BuildNetwork(Protocol):
    def line(self) -> AbstractAsyncContextManager[BuildLine]: ...


class MachineNetwork:
    """No walls: builds reach whatever this machine reaches, its own services included."""

    def __init__(self, why: str) -> None:
        self._why = why

    @asynccontextmanager
    async def line(self) -> AsyncIterator[BuildLine]:
        yield BuildLine(description=f"the machine's own ({self._why})")


class RoutedBuilds:
    """A namespace of its own for each build, with the reach of a sandbox of a ``public`` task."""

    def __init__(self, options: SandboxOptions) -> None:
        self._options = options

    @asynccontextmanager
    async def line(self) -> AsyncIterator[BuildLine]:
        from harbor.models.task.config import NetworkPolicy

        from seatrial.sandboxes.network.network_set import SandboxNetworks

        async with SandboxNetworks(self._options, install="builds") as networks:
            try:
                given = await networks.acquire(NetworkPolicy(), f"build-{uuid.uuid4().hex[:12]}")
            except SeatrialError as error:
                yield BuildLine(description=f"the machine's own ({error})")
                return
            try:
                yield BuildLine(
                    description=given.description, namespace=given.netns_path, resolv_conf=given.resolv_conf
                )
            finally:
                await given.release()


def build_network(options: SandboxOptions, environ: Mapping[str, str]) -> BuildNetwork:
    if options.network_mode == "host" and options.allow_host_network:
        return MachineNetwork("the operator allows it")
    if any(environ.get(name) for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")):
        return MachineNetwork("a proxy is set, which may be on this machine or beside it")
    return RoutedBuilds(options)
