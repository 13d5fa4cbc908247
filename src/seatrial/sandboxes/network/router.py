"""The network namespace between all sandboxes of this process and the machine.

::

    sandbox eth0 ── s1 ┐
    sandbox eth0 ── s2 ┼ router namespace ── uplink ══ seat000 ── the machine ── its default route
    sandbox eth0 ── s3 ┘   packet filter,                NAT
                           name server

Why a namespace of its own: the machine sees one interface instead of hundreds (and so do its udev, dockerd and
firewalls), whoever flushes the machine's rules does not open a sandbox, and when this process is killed the kernel
takes the router with it: sandboxes that outlive it are cut off at that moment, not when somebody cleans up.

There is no bridge: every sandbox is a point-to-point line with one address, so neighbours share nothing. A namespace is
never used twice; making one takes about two milliseconds and forgetting one takes none, since the kernel removes them
in batches. All methods block and belong in the one thread that does kernel work.
"""

from __future__ import annotations

import errno
import logging
import socket
from collections import deque
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from seatrial.errors import SandboxFault, SetupProblem
from seatrial.sandboxes.network import links
from seatrial.sandboxes.network.abandoned import AbandonedConnections
from seatrial.sandboxes.network.firewall import Firewall, own, rules
from seatrial.sandboxes.network.forward_rules import run_nft
from seatrial.sandboxes.network.limits import NetworkLimits
from seatrial.sandboxes.network.namespace import Namespace, entered, fresh_namespace, set_values
from seatrial.sandboxes.network.netlink import ROUTE, NetlinkError, NetlinkSocket
from seatrial.sandboxes.network.stamp import ProcessStamp
from seatrial.sandboxes.network.uplink import MACHINE_MAC, ROUTER_MAC, UPLINK_INDEX, Block, Uplink

_LOG = logging.getLogger(__name__)

_EVERYWHERE = IPv4Network("0.0.0.0/0")
_SANDBOX_MAC = bytes.fromhex("02736561 0003")
_ETH0 = 2
_FIRST_LINE = 16
_DNS_PORT = 53

_ROUTER_VALUES = {
    "ipv6/conf/default/disable_ipv6": "1",
    "ipv4/ip_forward": "1",
    "ipv4/icmp_ratelimit": "0",  # every refused packet is answered, so that nothing waits for a timeout
    "ipv4/conf/all/send_redirects": "0",
    "ipv4/conf/default/send_redirects": "0",
    # Every neighbour is written down by us. An answer to who asks would also make an entry for whoever a sandbox says
    # it is, in a table that has 1024 places for the whole machine.
    "ipv4/conf/all/arp_ignore": "8",
    "ipv4/conf/default/arp_ignore": "8",
}
_SANDBOX_VALUES = {
    "ipv6/conf/default/disable_ipv6": "1",  # for eth0; the loopback was there before and keeps ::1
    "ipv4/ip_unprivileged_port_start": "0",  # these two as container engines have them
    "ipv4/ping_group_range": "0 2147483647",
}


@dataclass(frozen=True, slots=True)
class Closures:
    """What no sandbox may reach, and the operator's exceptions from it."""

    never: tuple[IPv4Network, ...]
    private: tuple[IPv4Network, ...]
    granted: tuple[IPv4Network, ...] = ()


class Line:
    """One sandbox's namespace and the line that connects it to the router. Cut off until ``connect``."""

    def __init__(
        self, namespace: Namespace, kernel: NetlinkSocket, interface: str, address: IPv4Address, gateway: IPv4Address
    ) -> None:
        self.namespace = namespace
        self.interface = interface
        self.address = address
        self._kernel = kernel
        self._gateway = gateway

    def connect(self) -> None:
        """Gives the sandbox its routes."""
        self._kernel.request(
            [
                links.route(_ETH0, IPv4Network(self._gateway)),
                links.route(_ETH0, _EVERYWHERE, self._gateway),
            ],
            tolerate=frozenset({errno.EEXIST}),
        )

    def disconnect(self) -> None:
        """Takes the routes away: programs hear "network is unreachable" at once. Its own address still works."""
        self._kernel.request(
            [
                links.no_route(_ETH0, _EVERYWHERE, self._gateway),
                links.no_route(_ETH0, IPv4Network(self._gateway)),
            ],
            tolerate=frozenset({errno.ESRCH}),
        )

    def close(self) -> None:
        self._kernel.close()
        self.namespace.close()


class Router:
    """The router's namespace, from ``open`` to ``close``."""

    def __init__(self, stamp: ProcessStamp, closures: Closures, limits: NetworkLimits) -> None:
        self._closures = closures
        self._limits = limits
        self._uplink = Uplink(stamp)
        self._abandoned = AbandonedConnections(limits.crowded)
        self._own: set[IPv4Address] = set()
        self._free: deque[IPv4Address] = deque()
        self._next_line = _FIRST_LINE
        self.namespace: Namespace | None = None
        self._kernel: NetlinkSocket | None = None
        self._firewall: Firewall | None = None

    @property
    def firewall(self) -> Firewall:
        assert self._firewall is not None
        return self._firewall

    @property
    def gateway(self) -> IPv4Address:
        assert self._uplink.block is not None
        return self._uplink.block.gateway

    def open(self) -> None:
        """Makes the namespace and connects it to the machine. On failure ``close`` still has to be called."""
        with fresh_namespace() as namespace:
            set_values(_ROUTER_VALUES)
            self.namespace = namespace
            self._kernel = NetlinkSocket(ROUTE)
            self._firewall = Firewall()
        block = self._uplink.open(self.namespace)
        with entered(self.namespace):
            self._install(block)
        self._free.extend(block.sandboxes())
        self._follow_addresses()
        self._kernel.request(
            [
                links.up(links.LOOPBACK),
                links.up(UPLINK_INDEX),
                links.address(links.LOOPBACK, block.gateway),
                links.neighbour(UPLINK_INDEX, block.machine, MACHINE_MAC),
                links.route(UPLINK_INDEX, _EVERYWHERE, block.machine),
            ]
        )
        self._uplink.settle()

    def _install(self, block: Block) -> None:
        closures = self._closures
        never = (*closures.never, block.network)
        try:
            run_nft(rules(block.gateway, never, closures.private, closures.granted, self._limits))
        except SetupProblem as problem:
            without = rules(block.gateway, never, closures.private, closures.granted, self._limits, counts=False)
            run_nft(without)
            _LOG.warning("This kernel does not count the open connections of a sandbox: %s", problem.message)

    def close(self) -> None:
        self._abandoned.close()
        self._uplink.close()
        for part in (self._firewall, self._kernel, self.namespace):
            if part is not None:
                part.close()
        self._firewall = self._kernel = self.namespace = None

    def refresh(self) -> int:
        """Follows what has changed on the machine and clears leftovers of killed processes; how many there were."""
        self._follow_addresses()
        self._abandoned.clear()
        return self._uplink.refresh()

    def name_server_sockets(self) -> tuple[socket.socket, socket.socket]:
        """A datagram and a listening stream socket for the name server, on the gateway's address."""
        assert self.namespace is not None
        with entered(self.namespace):
            datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            streams = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            datagrams.bind((str(self.gateway), _DNS_PORT))
            streams.bind((str(self.gateway), _DNS_PORT))
            streams.listen(1024)
        except BaseException:
            datagrams.close()
            streams.close()
            raise
        return datagrams, streams

    def new_line(self) -> Line:
        """A sandbox's namespace with its address, not connected yet and known to no rule."""
        with fresh_namespace() as namespace:
            set_values(_SANDBOX_VALUES)
            kernel = NetlinkSocket(ROUTE)
        return self._laid(namespace, kernel)

    def line_to(self, namespace: Namespace) -> Line:
        """The same for an empty namespace that somebody else made, such as a container engine; takes it over."""
        try:
            with entered(namespace):
                set_values(_SANDBOX_VALUES)
                kernel = NetlinkSocket(ROUTE)
        except BaseException:
            namespace.close()
            raise
        return self._laid(namespace, kernel)

    def _laid(self, namespace: Namespace, kernel: NetlinkSocket) -> Line:
        assert self._kernel is not None
        try:
            index, address = self._attach(namespace)
            kernel.request(
                [
                    links.up(links.LOOPBACK),
                    links.up(_ETH0),
                    links.address(_ETH0, address),
                    links.neighbour(_ETH0, self.gateway, ROUTER_MAC),
                ]
            )
            self._kernel.request([links.settle(index)])
        except BaseException:
            kernel.close()
            namespace.close()
            raise
        return Line(namespace, kernel, f"s{index}", address, self.gateway)

    def forget(self, line: Line) -> None:
        """Lets a line go. The kernel removes it once no process is in the sandbox's namespace any more."""
        line.close()
        self._abandoned.add(line.address)
        self._free.append(line.address)

    def _attach(self, namespace: Namespace) -> tuple[int, IPv4Address]:
        assert self._kernel is not None
        for _ in range(len(self._free)):
            address = self._free.popleft()
            index = self._next_line
            self._next_line += 1
            near = links.End(f"s{index}", index, ROUTER_MAC)
            far = links.End("eth0", _ETH0, _SANDBOX_MAC, namespace.file)
            try:
                self._kernel.request(
                    [
                        links.veth(near, far, self._uplink.mtu),
                        links.neighbour(index, address, _SANDBOX_MAC),
                        links.route(index, IPv4Network(address)),
                    ]
                )
            except NetlinkError as error:
                self._free.append(address)
                if error.errno != errno.EEXIST:
                    raise SandboxFault(f"A sandbox's network could not be made: {error}") from error
                # Processes that should be dead are still in the namespace that had this address: take another one.
                self._kernel.request([links.remove(index)], tolerate=frozenset({errno.ENODEV}))
            else:
                self._abandoned.discard(address)
                return index, address
        raise SandboxFault(
            "Every address for sandboxes of this process is in use.", fix="Run fewer at once, or start another worker."
        )

    def _follow_addresses(self) -> None:
        current = self._uplink.own_addresses()
        self.firewall.change(add=map(own, sorted(current - self._own)), remove=map(own, sorted(self._own - current)))
        self._own = current
