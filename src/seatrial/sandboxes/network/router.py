"""The network namespace between all sandboxes of this process and the machine.

::

    sandbox eth0 ── s1 ┐
    sandbox eth0 ── s2 ┼ router namespace ── uplink ══ seat000 ── the machine ── its default route
    sandbox eth0 ── s3 ┘   packet filter,                NAT
                           name server

Why a separate namespace: the machine (with its udev, dockerd and firewalls) sees one interface instead of hundreds, a
flush of the machine's rules opens no sandbox, and when this process is killed the kernel removes the router, which cuts
off the remaining sandboxes at once.

There is no bridge: every sandbox has a point-to-point line with one address, so neighbours share nothing. A namespace
is never used twice. It takes about two milliseconds to make one and no time to forget one, because the kernel removes
them in batches. All methods block and belong in the one thread for kernel work.
"""

from __future__ import annotations

import dataclasses
import errno
import logging
import socket
from collections import deque
from ipaddress import IPv4Address, IPv4Network

from seatrial.errors import SandboxFault, SetupProblem
from seatrial.sandboxes.network import links
from seatrial.sandboxes.network.abandoned import AbandonedConnections
from seatrial.sandboxes.network.firewall import ClosedNetworks, Firewall, own, rules
from seatrial.sandboxes.network.forward_rules import run_nft
from seatrial.sandboxes.network.limits import NetworkLimits
from seatrial.sandboxes.network.namespace import Namespace, entered, fresh_namespace, set_values
from seatrial.sandboxes.network.netlink import ROUTE, NetlinkError, NetlinkSocket
from seatrial.sandboxes.network.uplink import MACHINE_MAC, ROUTER_MAC, UPLINK_INDEX, Block, ProcessStamp, Uplink

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
    # The router writes every neighbour entry itself. An ARP answer would also add an entry for the address that a
    # sandbox claims to have, in a table with 1024 places for the whole machine.
    "ipv4/conf/all/arp_ignore": "8",
    "ipv4/conf/default/arp_ignore": "8",
}
_SANDBOX_VALUES = {
    "ipv6/conf/default/disable_ipv6": "1",  # for eth0; the loopback exists already and keeps ::1
    "ipv4/ip_unprivileged_port_start": "0",  # container engines set these two as well
    "ipv4/ping_group_range": "0 2147483647",
}


class Line:
    """A sandbox's namespace and its link to the router. It has no routes before ``connect``."""

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
        routes = [links.route(_ETH0, IPv4Network(self._gateway)), links.route(_ETH0, _EVERYWHERE, self._gateway)]
        self._kernel.request(routes, tolerate=frozenset({errno.EEXIST}))

    def disconnect(self) -> None:
        """Removes the routes: programs get "network is unreachable" at once. The sandbox's own address still works."""
        routes = [links.no_route(_ETH0, _EVERYWHERE, self._gateway), links.no_route(_ETH0, IPv4Network(self._gateway))]
        self._kernel.request(routes, tolerate=frozenset({errno.ESRCH}))

    def close(self) -> None:
        self._kernel.close()
        self.namespace.close()


class Router:
    """The router's namespace, from ``open`` to ``close``."""

    def __init__(self, stamp: ProcessStamp, closed: ClosedNetworks, limits: NetworkLimits) -> None:
        self._closed = closed
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
        closed = dataclasses.replace(self._closed, never=(*self._closed.never, block.network))
        try:
            run_nft(rules(block.gateway, closed, self._limits))
        except SetupProblem as problem:
            run_nft(rules(block.gateway, closed, self._limits, counts=False))
            _LOG.warning("This kernel does not count the open connections of a sandbox: %s", problem.message)

    def close(self) -> None:
        self._abandoned.close()
        self._uplink.close()
        for part in (self._firewall, self._kernel, self.namespace):
            if part is not None:
                part.close()
        self._firewall = self._kernel = self.namespace = None

    def refresh(self) -> int:
        """Follows changes of the machine and clears leftovers of killed processes. Returns how many there were."""
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
        """A new namespace for a sandbox, with an address, without routes, and in no rule."""
        with fresh_namespace() as namespace:
            kernel = _prepare_sandbox()
        return self._attach(namespace, kernel)

    def line_to(self, namespace: Namespace) -> Line:
        """The same for an empty namespace, for example of a container engine. The line closes it."""
        try:
            with entered(namespace):
                kernel = _prepare_sandbox()
        except BaseException:
            namespace.close()
            raise
        return self._attach(namespace, kernel)

    def _attach(self, namespace: Namespace, kernel: NetlinkSocket) -> Line:
        assert self._kernel is not None
        try:
            index, address = self._add_pair(namespace)
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
        """Closes a line. The kernel removes it when no process is in the sandbox's namespace any more."""
        line.close()
        self._abandoned.add(line.address)
        self._free.append(line.address)

    def _add_pair(self, namespace: Namespace) -> tuple[int, IPv4Address]:
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
                # A process that should be dead is still in the namespace with this address: take another address.
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


def _prepare_sandbox() -> NetlinkSocket:
    """Sets the values of a sandbox's namespace, which the calling thread is in. Returns a socket to it."""
    set_values(_SANDBOX_VALUES)
    return NetlinkSocket(ROUTE)
