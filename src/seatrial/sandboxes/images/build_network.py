"""The network of builds: the public internet, and nothing of this machine or its private network.

``buildah`` takes a line for each build. If none can be made, the build has no network, and its log says why. The
machine's own network is used only if the operator allows it.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.errors import SeatrialError
from seatrial.sandboxes.options import SandboxOptions

PROXY_NAMES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")


class BuildLine(Frozen):
    """The network of one build."""

    description: str
    namespace: Path | None = None
    """``None`` for no network, or for the machine's own."""
    resolv_conf: str = ""
    machine: bool = False
    """The machine's own network."""

    @property
    def connected(self) -> bool:
        return self.machine or self.namespace is not None


class MachineNetwork:
    """Builds reach everything that this machine reaches, its own services included."""

    def __init__(self, why: str) -> None:
        self._why = why

    @asynccontextmanager
    async def line(self) -> AsyncIterator[BuildLine]:
        yield BuildLine(description=f"the machine's own ({self._why})", machine=True)


class RoutedBuilds:
    """A separate namespace for each build, with the reach of a ``public`` sandbox."""

    def __init__(self, options: SandboxOptions, note: str = "") -> None:
        self._options = options
        self._note = f" ({note})" if note else ""

    @asynccontextmanager
    async def line(self) -> AsyncIterator[BuildLine]:
        from harbor.models.task.config import NetworkPolicy

        from seatrial.sandboxes.network.network_set import SandboxNetworks

        async with SandboxNetworks(self._options, install="builds") as networks:
            try:
                given = await networks.acquire(NetworkPolicy(), f"build-{uuid.uuid4().hex[:12]}")
            except SeatrialError as error:
                yield self._without(error)
                return
            try:
                yield BuildLine(
                    description=f"{given.description}{self._note}",
                    namespace=given.netns_path,
                    resolv_conf=given.resolv_conf,
                )
            finally:
                await given.release()

    def _without(self, error: SeatrialError) -> BuildLine:
        if self._options.allow_host_network_builds:
            return BuildLine(description=f"the machine's own (the operator allows it; {error})", machine=True)
        return BuildLine(description=f"none ({error} SEATRIAL_ALLOW_HOST_NETWORK_BUILDS lets builds use the machine's)")


type BuildNetwork = MachineNetwork | RoutedBuilds


def build_network(options: SandboxOptions, environ: Mapping[str, str]) -> BuildNetwork:
    if options.network_mode == "host" and options.allow_host_network:
        return MachineNetwork("the operator allows it")
    behind_proxy = any(environ.get(name) for name in PROXY_NAMES)
    if behind_proxy and options.allow_host_network_builds:
        return MachineNetwork("the operator allows it, and a proxy is set")
    note = "a proxy is set; a private one is reached if SEATRIAL_PRIVATE_DESTINATIONS names it" if behind_proxy else ""
    return RoutedBuilds(options, note)
