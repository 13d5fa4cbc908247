"""Interfaces, addresses, neighbours and routes as requests to the kernel, one function for each kind.

``router`` combines them. The caller chooses interface numbers, so that a whole set-up fits in one batch.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from seatrial.sandboxes.network.netlink import (
    CREATE,
    EXCLUSIVE,
    Message,
    NetlinkSocket,
    attribute,
    attributes,
    nested,
    number,
    text,
)

_NEWLINK, _DELLINK, _GETLINK, _SETLINK = 16, 17, 18, 19
_NEWADDR, _GETADDR = 20, 22
_NEWROUTE, _DELROUTE, _GETROUTE = 24, 25, 26
_NEWNEIGH = 28

_UP = 0x1
_LINK = struct.Struct("=BxHiII")
_IF_ADDRESS, _IF_NAME, _IF_MTU, _IF_LINKINFO, _IF_ALIAS, _IF_NAMESPACE_FD = 1, 3, 4, 18, 20, 28
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_ADDRESS, _LOCAL = 1, 2
_ROUTE_TO, _ROUTE_VIA_LINK, _ROUTE_GATEWAY = 1, 4, 5
_NEIGHBOUR_IP, _NEIGHBOUR_MAC = 1, 2
_TABLE_MAIN, _BY_ADMIN, _UNICAST = 254, 4, 1
_SCOPE_GLOBAL, _SCOPE_LINK = 0, 253
_ON_LINK = 4
_PERMANENT = 0x80

LOOPBACK = 1


@dataclass(frozen=True, slots=True)
class End:
    """One end of a veth pair. ``namespace`` is an open file of the namespace it goes to; ``None`` for the socket's."""

    name: str
    index: int
    mac: bytes
    namespace: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """An interface that exists."""

    index: int
    name: str
    alias: str
    mtu: int


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the main table. ``network`` is ``0.0.0.0/0`` for a default route."""

    network: IPv4Network
    link: int


def veth(near: End, far: End, mtu: int) -> Message:
    """Makes a pair of interfaces. The near one is up. The far one has to be brought up in its own namespace.

    The kernel uses the far number only if the near one is not 0. It chooses a number in place of 0."""
    peer = _LINK.pack(0, 0, far.index, 0, 0) + _end(far, mtu)
    info = nested(_IF_LINKINFO, text(_INFO_KIND, "veth"), nested(_INFO_DATA, attribute(_VETH_PEER, peer)))
    return Message(_NEWLINK, _LINK.pack(0, 0, near.index, _UP, _UP) + _end(near, mtu) + info, CREATE | EXCLUSIVE)


def up(link: int) -> Message:
    return Message(_SETLINK, _LINK.pack(0, 0, link, _UP, _UP))


def settle(link: int) -> Message:
    """Makes an interface whose other end just came up carry packets at once.

    Otherwise the kernel drops packets for a moment. A request for the interface's state makes the kernel update it
    first (since Linux 6.8; before, this request does nothing)."""
    return Message(_GETLINK, _LINK.pack(0, 0, link, 0, 0))


def label(link: int, alias: str) -> Message:
    return Message(_SETLINK, _LINK.pack(0, 0, link, 0, 0) + text(_IF_ALIAS, alias))


def remove(link: int) -> Message:
    return Message(_DELLINK, _LINK.pack(0, 0, link, 0, 0))


def address(link: int, value: IPv4Address) -> Message:
    """Gives an interface one address (``/32``)."""
    body = struct.pack("=BBBBI", socket.AF_INET, 32, 0, _SCOPE_GLOBAL, link)
    body += attribute(_LOCAL, value.packed) + attribute(_ADDRESS, value.packed)
    return Message(_NEWADDR, body, CREATE | EXCLUSIVE)


def neighbour(link: int, value: IPv4Address, mac: bytes) -> Message:
    """A permanent neighbour entry. It saves the ARP request.

    It also does not count against the kernel's limit of neighbours (1024 by default, for all namespaces), which a few
    hundred sandboxes would reach."""
    body = struct.pack("=BxxxiHBB", socket.AF_INET, link, _PERMANENT, 0, 0)
    body += attribute(_NEIGHBOUR_IP, value.packed) + attribute(_NEIGHBOUR_MAC, mac)
    return Message(_NEWNEIGH, body, CREATE | EXCLUSIVE)


def route(link: int, network: IPv4Network, via: IPv4Address | None = None) -> Message:
    return Message(_NEWROUTE, _route(link, network, via), CREATE | EXCLUSIVE)


def no_route(link: int, network: IPv4Network, via: IPv4Address | None = None) -> Message:
    return Message(_DELROUTE, _route(link, network, via))


def list_links(kernel: NetlinkSocket) -> list[Link]:
    found = []
    for answer in kernel.dump(Message(_GETLINK, _LINK.pack(0, 0, 0, 0, 0))):
        _, _, index, _, _ = _LINK.unpack_from(answer.body)
        values = attributes(answer.body[_LINK.size :])
        found.append(
            Link(
                index=index,
                name=_text(values.get(_IF_NAME, b"")),
                alias=_text(values.get(_IF_ALIAS, b"")),
                mtu=struct.unpack("=I", values[_IF_MTU])[0],
            )
        )
    return found


def list_addresses(kernel: NetlinkSocket) -> list[IPv4Address]:
    found = []
    for answer in kernel.dump(Message(_GETADDR, struct.pack("=BBBBI", socket.AF_INET, 0, 0, 0, 0))):
        values = attributes(answer.body[8:])
        found.append(IPv4Address(values.get(_LOCAL) or values[_ADDRESS]))
    return found


def list_routes(kernel: NetlinkSocket) -> list[Route]:
    """The unicast IPv4 routes of all tables except the kernel's own, with their interface."""
    found = []
    for answer in kernel.dump(Message(_GETROUTE, struct.pack("=BBBBBBBBI", socket.AF_INET, *([0] * 8)))):
        _, length, _, _, _, _, _, kind, _ = struct.unpack_from("=BBBBBBBBI", answer.body)
        values = attributes(answer.body[12:])
        if kind != _UNICAST or _ROUTE_VIA_LINK not in values:
            continue
        start = IPv4Address(values.get(_ROUTE_TO, b"\0\0\0\0"))
        link = struct.unpack("=I", values[_ROUTE_VIA_LINK])[0]
        found.append(Route(IPv4Network((start, length)), link))
    return found


def _end(end: End, mtu: int) -> bytes:
    packed = text(_IF_NAME, end.name) + number(_IF_MTU, mtu) + attribute(_IF_ADDRESS, end.mac)
    return packed if end.namespace is None else packed + number(_IF_NAMESPACE_FD, end.namespace)


def _route(link: int, network: IPv4Network, via: IPv4Address | None) -> bytes:
    scope, flags = (_SCOPE_LINK, 0) if via is None else (_SCOPE_GLOBAL, _ON_LINK)
    header = struct.pack(
        "=BBBBBBBBI", socket.AF_INET, network.prefixlen, 0, 0, _TABLE_MAIN, _BY_ADMIN, scope, _UNICAST, flags
    )
    packed = header + attribute(_ROUTE_TO, network.network_address.packed) + number(_ROUTE_VIA_LINK, link)
    return packed if via is None else packed + attribute(_ROUTE_GATEWAY, via.packed)


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")
