"""Tests whether this machine can give sandboxes a network, by making one. ``seatrial doctor`` shows the findings."""

from __future__ import annotations

import asyncio
import time

from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.errors import SeatrialError
from seatrial.sandboxes.network import links
from seatrial.sandboxes.network.names import MachineNames
from seatrial.sandboxes.network.netlink import ROUTE, NetlinkSocket
from seatrial.sandboxes.network.network_set import SandboxNetworks
from seatrial.sandboxes.network.reach import default_network, parse_networks
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.selection import Finding

_SETTINGS = "network settings"
_SANDBOX = "sandbox network"


async def probe(
    options: SandboxOptions, *, install: str = "doctor", names: MachineNames | None = None
) -> tuple[Finding, ...]:
    """The findings. Undoes its changes of the machine, and disturbs no worker that runs at the same time."""
    names = names or MachineNames()
    return (
        _settings(options),
        await _sandbox(options, install, names),
        await asyncio.to_thread(_way_out),
        _resolvers(names.servers),
    )


def _settings(options: SandboxOptions) -> Finding:
    try:
        default = default_network(options)
        granted = parse_networks(options.private_destinations)
    except SeatrialError as error:
        return Finding(name=_SETTINGS, ok=False, detail=error.message, fix=error.fix)
    details = [f"tasks without a network mode get {default}"]
    if options.allow_private_network:
        details.append("private addresses are open to every sandbox")
    elif granted:
        details.append(f"open to every sandbox besides public addresses: {', '.join(map(str, granted))}")
    return Finding(name=_SETTINGS, ok=True, detail="; ".join(details))


async def _sandbox(options: SandboxOptions, install: str, names: MachineNames) -> Finding:
    """Makes a network, applies each mode, and removes the network."""
    start = time.perf_counter()
    try:
        async with SandboxNetworks(options, install=install, names=names) as networks:
            network = await networks.acquire(NetworkPolicy(), "probe")
            ready = time.perf_counter()
            await network.apply(NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["192.0.2.0/24"]))
            await network.apply(NetworkPolicy(network_mode=NetworkMode.NO_NETWORK))
            await network.release()
    except SeatrialError as error:
        return Finding(name=_SANDBOX, ok=False, detail=error.message, fix=error.fix)
    return Finding(
        name=_SANDBOX,
        ok=True,
        detail=f"public, no-network and allowlist, IPv4 only; set up in {(ready - start) * 1000:.0f} ms",
    )


def _way_out() -> Finding:
    with NetlinkSocket(ROUTE) as kernel:
        routes = links.list_routes(kernel)
        interfaces = {link.index: link.name for link in links.list_links(kernel)}
    ways = sorted({interfaces.get(route.link, "?") for route in routes if route.network.prefixlen == 0})
    missing = "this machine has no default route, so sandboxes reach no further than it does"
    return Finding(
        name="way out",
        ok=bool(ways),
        detail=f"by {', '.join(ways)}" if ways else missing,
        fix="" if ways else "Run: ip route add default via <your gateway>",
        needed=False,
    )


def _resolvers(servers: tuple[str, ...]) -> Finding:
    missing = "this machine's resolv.conf names no server; sandboxes get what the C library finds"
    return Finding(
        name="name resolution",
        ok=bool(servers),
        detail=f"by {', '.join(servers)}, on behalf of sandboxes" if servers else missing,
        fix="" if servers else "Add a nameserver line to /etc/resolv.conf",
        needed=False,
    )
