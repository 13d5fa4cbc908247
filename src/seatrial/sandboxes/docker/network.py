"""The network of a docker sandbox: a line to our own router where that is possible, else a bridge of the engine.

As root on the engine's machine, the container starts without any network, and its namespace is connected like that of a
daemonless sandbox: the same filter, the same names, the same switching. Elsewhere it joins one bridge that all
sandboxes share (an engine has addresses for about thirty networks, so there cannot be one for each). Containers there
do not reach each other. What the bridge cannot close is in the trial's lock.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.errors import SandboxFault, SetupProblem, Unsupported
from seatrial.sandboxes.docker.client import EngineClient, EngineRefused
from seatrial.sandboxes.docker.container import Container
from seatrial.sandboxes.network.network import Network, SandboxNetwork
from seatrial.sandboxes.network.network_set import SandboxNetworks, SharedNetworks
from seatrial.sandboxes.network.reach import require_host_network, require_open
from seatrial.sandboxes.options import Owner, SandboxOptions
from seatrial.system.file_locks import file_lock

BRIDGE = "seatrial"
LABEL = "seatrial.network"


class EngineNetwork(Network, Protocol):
    """The network of one container."""

    @property
    def not_applied(self) -> tuple[str, ...]: ...

    async def host_config(self) -> Mapping[str, Any]:
        """What the container has to be created with."""
        ...

    async def connect(self, container: Container) -> None:
        """Gives the running container what its policy allows."""
        ...


def choose_network(
    engine: EngineClient,
    options: SandboxOptions,
    owner: Owner,
    name: str,
    policy: NetworkPolicy | None,
    *,
    routed: bool,
) -> EngineNetwork:
    """The best kind that is possible here. Without a policy it is the machine's own network; ``routed`` says whether
    our router can serve the engine's containers, see ``can_route``."""
    if policy is None:
        return HostNetwork(options)
    if routed:
        return RoutedNetwork(_networks().of(options, owner.install), name, policy)
    return BridgeNetwork(engine, policy, options.cache / "locks")


def can_route() -> bool:
    """Whether this machine has what our router needs; the engine has to be here too (``local_container.runs_here``)."""
    return shutil.which("nft") is not None


@lru_cache(maxsize=1)
def _networks() -> SharedNetworks:
    return SharedNetworks()


class RoutedNetwork:
    """A line to our own router."""

    not_applied: tuple[str, ...] = ()

    def __init__(self, networks: SandboxNetworks, name: str, policy: NetworkPolicy) -> None:
        self._networks = networks
        self._name = name
        self._policy = policy
        self._network: SandboxNetwork | None = None

    @property
    def description(self) -> str:
        return self._network.description if self._network is not None else ""

    @property
    def netns_path(self) -> Path | None:
        return self._network.netns_path if self._network is not None else None

    async def host_config(self) -> Mapping[str, Any]:
        return {"NetworkMode": "none", "Dns": [str(await self._networks.name_server())]}

    async def connect(self, container: Container) -> None:
        if container.id not in Path(f"/proc/{container.pid}/cgroup").read_text():
            raise SandboxFault("The container's first process is not visible here, so its network cannot be made.")
        self._network = await self._networks.adopt(self._policy, self._name, Path(f"/proc/{container.pid}/ns/net"))

    async def apply(self, policy: NetworkPolicy) -> None:
        if self._network is None:
            raise SandboxFault("The sandbox's network is gone.")
        await self._network.apply(policy)

    async def release(self) -> None:
        if self._network is not None:
            await self._network.release()


class BridgeNetwork:
    """The engine's own means: nothing, or the bridge that all sandboxes share."""

    def __init__(self, engine: EngineClient, policy: NetworkPolicy, locks: Path) -> None:
        self._engine = engine
        self._locks = locks
        self._policy = policy
        self._container: Container | None = None

    @property
    def description(self) -> str:
        return "none" if self._policy.network_mode is NetworkMode.NO_NETWORK else "public (a bridge of the engine)"

    @property
    def not_applied(self) -> tuple[str, ...]:
        if self._policy.network_mode is NetworkMode.NO_NETWORK:
            return ()
        return ("network: private addresses, the metadata address and the engine's machine can be reached",)

    @property
    def netns_path(self) -> Path | None:
        container = self._container
        if container is None or container.local is None or not container.local.alive:
            raise SetupProblem(
                "The sandbox's network cannot be entered from here, so an agent inside it cannot be led to its model.",
                fix="Run as root on the engine's own machine, use --sandbox oci, or an agent that runs outside. "
                "SEATRIAL_ALLOW_KEYS_IN_SANDBOX gives the agent its key instead.",
            )
        return Path(f"/proc/{container.pid}/ns/net")

    async def host_config(self) -> Mapping[str, Any]:
        if self._policy.network_mode is NetworkMode.NO_NETWORK:
            return {"NetworkMode": "none"}
        await self._shared_bridge()
        return {"NetworkMode": BRIDGE}

    async def connect(self, container: Container) -> None:
        self._container = container

    async def apply(self, policy: NetworkPolicy) -> None:
        container = self._container
        if container is None:
            raise SandboxFault("The sandbox's network is gone.")
        before, after = (_mode(self._policy), _mode(policy))
        if before is not after:
            await self._shared_bridge()
            leave, join = ("none", BRIDGE) if after is NetworkMode.PUBLIC else (BRIDGE, "none")
            await self._engine.post(f"/networks/{leave}/disconnect", {"Container": container.name, "Force": True})
            await self._engine.post(f"/networks/{join}/connect", {"Container": container.name})
        self._policy = policy

    async def release(self) -> None:
        self._container = None

    async def _shared_bridge(self) -> None:
        """Makes the bridge if it is missing. Without the lock, two workers could make two bridges of one name."""
        async with file_lock(self._locks / "bridge.lock"):
            found = await self._engine.get("/networks", filters={"name": [BRIDGE]})
            if any(entry["Name"] == BRIDGE for entry in found):
                return
            body = {
                "Name": BRIDGE,
                "Driver": "bridge",
                "CheckDuplicate": True,
                "Labels": {LABEL: "shared"},
                "Options": {"com.docker.network.bridge.enable_icc": "false"},
            }
            try:
                await self._engine.post("/networks/create", body)
            except EngineRefused as error:
                if error.status != 409:  # a worker on another machine has just made it
                    raise


class HostNetwork:
    """The machine's own network. Nothing about it can be limited."""

    description = "host (shared with the machine, nothing is closed)"
    netns_path: Path | None = None
    not_applied = ("network: shared with the engine's machine, as the operator allowed",)

    def __init__(self, options: SandboxOptions) -> None:
        require_host_network(options)

    async def host_config(self) -> Mapping[str, Any]:
        return {"NetworkMode": "host"}

    async def connect(self, container: Container) -> None:
        return None

    async def apply(self, policy: NetworkPolicy) -> None:
        require_open(policy)

    async def release(self) -> None:
        return None


def _mode(policy: NetworkPolicy) -> NetworkMode:
    if policy.network_mode is NetworkMode.ALLOWLIST:
        raise Unsupported("An allowlist of hosts cannot be enforced through the container engine alone.")
    return policy.network_mode
