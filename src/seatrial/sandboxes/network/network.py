"""The network of one sandbox: behind Seatrial's router, or the machine's own. ``network_set`` makes them.

- *Allowlists by name.* The name server refuses other names, and opens each address in the packet filter before it
  answers. An address stays open while the answer is valid, and at least for an hour, because programs keep connections
  and answers for too long. Other names at the same address are reachable too, as with every filter of addresses.
- *A change of policy* also applies to open connections.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harbor.models.task.config import NetworkPolicy

from seatrial.errors import SandboxFault
from seatrial.sandboxes.network import dns, firewall
from seatrial.sandboxes.network.firewall import Element
from seatrial.sandboxes.network.reach import Reach, require_open
from seatrial.sandboxes.network.router import Line, Router
from seatrial.sandboxes.parsed_file import read_or_empty

if TYPE_CHECKING:
    from seatrial.sandboxes.network.network_set import SandboxNetworks

_SHORTEST_OPEN_SEC = 3600.0
_LONGEST_OPEN_SEC = 86400.0
_MOST_HOSTS = 4096
"""Addresses that the names of one sandbox's allowlist may open at once."""
_LOCALHOST = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"


class Network(Protocol):
    """The network of one sandbox."""

    @property
    def netns_path(self) -> Path | None:
        """Its namespace on this machine; ``None`` for the machine's own. ``SetupProblem`` if it cannot be entered."""
        ...

    @property
    def description(self) -> str:
        """What it may reach at the moment, for the trial's lock."""
        ...

    async def apply(self, policy: NetworkPolicy) -> None: ...

    async def release(self) -> None: ...


class RoutedNetwork:
    """A network behind the router, until ``release``. A process joins it through the namespace at ``netns_path``."""

    def __init__(
        self, networks: SandboxNetworks, router: Router, line: Line, sandbox_id: str, clock: Callable[[], float]
    ) -> None:
        self.hostname = hostname_of(sandbox_id)
        self.netns_path: Path | None = line.namespace.path
        self.address = line.address
        search = networks.search
        self.resolv_conf = f"nameserver {router.gateway}\n" + (f"search {' '.join(search)}\n" if search else "")
        self.hosts = f"{_LOCALHOST}{line.address}\t{self.hostname}\n"
        self._networks = networks
        self._router = router
        self._line = line
        self._clock = clock
        self._reach = Reach()
        self._elements: frozenset[Element] = frozenset()
        self._learned: dict[IPv4Address, tuple[str, float]] = {}
        self._turn = asyncio.Lock()
        self._released = False

    @property
    def description(self) -> str:
        """What it may reach now, for the trial's lock."""
        return self._reach.description

    async def apply(self, policy: NetworkPolicy) -> None:
        """Changes what it may reach while its processes run."""
        await self.change(self._networks.permitted(policy))

    async def change(self, reach: Reach) -> None:
        async with self._turn:
            if self._released:
                raise SandboxFault("The sandbox's network was already released.")
            if not reach.nothing:
                await self._networks.work(self._line.connect)
            self._set(reach)
            if reach.nothing:
                await self._networks.work(self._line.disconnect)

    async def release(self) -> None:
        """Cuts the sandbox off for good. Does nothing the second time."""
        async with self._turn:
            if self._released:
                return
            self._released = True
            self._set(Reach())
            self._router.firewall.forget(self.address)
            self._networks.discard(self)
            self._router.forget(self._line)

    def admits(self, name: str) -> bool:
        return self._reach.admits(name)

    def learned(self, name: str, addresses: Sequence[dns.Address]) -> None:
        """Opens the addresses of an allowed name."""
        if self._reach.everything or not addresses:
            return
        now = self._clock()
        for address in addresses[: _MOST_HOSTS // 16]:
            known = self._learned.get(address.value)
            until = now + min(max(address.ttl, _SHORTEST_OPEN_SEC), _LONGEST_OPEN_SEC)
            self._learned[address.value] = (name, max(until, known[1] if known else until))
        while len(self._learned) > _MOST_HOSTS:
            del self._learned[next(iter(self._learned))]
        self._set(self._reach)

    def expire(self) -> None:
        """Closes addresses whose answers are too old."""
        self._set(self._reach)

    def _set(self, reach: Reach) -> None:
        now = self._clock()
        self._learned = {
            address: (name, until)
            for address, (name, until) in self._learned.items()
            if until > now and not reach.everything and reach.admits(name)
        }
        wanted = frozenset(self._wanted(reach))
        self._router.firewall.change(add=wanted - self._elements, remove=self._elements - wanted)
        self._reach, self._elements = reach, wanted

    def _wanted(self, reach: Reach) -> Iterator[Element]:
        if reach.nothing:
            return
        yield firewall.member(self._line.interface, self.address)
        if reach.everything:
            yield firewall.everything(self.address)
        for network in reach.networks:
            yield firewall.network(self.address, network)
        for address in self._learned:
            yield firewall.host(self.address, address)


class HostNetwork:
    """The machine's own network, with the same methods. It cannot be limited."""

    netns_path: Path | None = None
    description = "host (shared with the machine, nothing is closed)"

    def __init__(self, sandbox_id: str) -> None:
        self.hostname = hostname_of(sandbox_id)
        self.resolv_conf = read_or_empty("/etc/resolv.conf")
        self.hosts = f"{read_or_empty('/etc/hosts') or _LOCALHOST}127.0.1.1\t{self.hostname}\n"

    async def apply(self, policy: NetworkPolicy) -> None:
        require_open(policy)

    async def release(self) -> None:
        return None


type SandboxNetwork = RoutedNetwork | HostNetwork


def hostname_of(sandbox_id: str) -> str:
    """The id as a host name: one label, at most 63 characters."""
    return re.sub(r"[^a-z0-9-]+", "-", sandbox_id.lower())[:63].strip("-") or "sandbox"
