"""The packet filter between sandboxes and everything else.

It is in the router's namespace, where a flush of the machine's own rules does not reach it. The rules are written once.
A sandbox is a few set elements, so a packet costs the same with 750 sandboxes as with one. A change of policy is one
atomic transaction. It also applies to open connections, because no rule accepts packets for being *established*.

The filter tracks connections only to count them for each sandbox (``limits``). It does not track questions to the name
server, which have a rate limit. ``network`` decides what a sandbox may reach. This module knows only addresses and
interface names.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from seatrial.sandboxes.network.limits import NetworkLimits
from seatrial.sandboxes.network.netlink import CREATE, NETFILTER, Message, NetlinkSocket, attribute, nested, text

TABLE = "seatrial"
UPLINK = "uplink"
"""The router's interface towards the machine."""

_SUBSYSTEM = 10
_NEW_ELEMENT = _SUBSYSTEM << 8 | 12
_DELETE_ELEMENT = _SUBSYSTEM << 8 | 14
_BATCH = (16, 17)
_FAMILY_INET = 1
_ELEMENTS_TABLE, _ELEMENTS_SET, _ELEMENTS, _ELEMENT = 1, 2, 3, 1
_KEY, _KEY_END, _VALUE = 1, 10, 1

SetName = Literal["members", "open", "hosts", "networks", "own", "counted", "begun", "asking", "calling", "refused"]
_COUNTERS: tuple[SetName, ...] = ("counted", "begun", "asking", "calling", "refused")

RULES = """
table inet seatrial {{
    set members {{ type ifname . ipv4_addr; }}
    set open {{ type ipv4_addr; }}
    set hosts {{ type ipv4_addr . ipv4_addr; }}
    set networks {{ type ipv4_addr . ipv4_addr; flags interval; }}
    set own {{ type ipv4_addr; }}
    set never {{ type ipv4_addr; flags interval; auto-merge; elements = {{ {never} }} }}
    set closed {{ type ipv4_addr; flags interval; auto-merge; {closed} }}
    set granted {{ type ipv4_addr; flags interval; auto-merge; {granted} }}
    set counted {{ type ipv4_addr; size {most}; flags dynamic; }}
    set begun {{ type ipv4_addr; size {most}; flags dynamic; }}
    set asking {{ type ipv4_addr; size {most}; flags dynamic; }}
    set calling {{ type ipv4_addr; size {most}; flags dynamic; }}
    set refused {{ type ipv4_addr; size {most}; flags dynamic; }}

    chain untracked_in {{
        type filter hook prerouting priority raw; policy accept;
        ip daddr {gateway} notrack
    }}
    chain untracked_out {{
        type filter hook output priority raw; policy accept;
        ip saddr {gateway} notrack
    }}
    chain input {{
        type filter hook input priority filter; policy drop;
        iifname "lo" accept
        iifname . ip saddr != @members drop
        ip daddr {gateway} udp dport 53 goto question
        ip daddr {gateway} tcp dport 53 goto question_stream
        ip daddr {gateway} icmp type echo-request goto question
        jump refuse
    }}
    chain question {{
        add @asking {{ ip saddr limit rate over {questions}/second burst {questions_burst} packets }} drop
        accept
    }}
    chain question_stream {{
        tcp flags & (syn | ack) == syn jump new_stream
        accept
    }}
    chain new_stream {{
        add @calling {{ ip saddr limit rate over {questions}/second burst {questions} packets }} goto refuse
    }}
    chain forward {{
        type filter hook forward priority filter; policy drop;
        meta nfproto != ipv4 drop
        iifname "{uplink}" goto inbound
        iifname . ip saddr @members goto outbound
    }}
    chain outbound {{
        oifname != "{uplink}" goto refuse
        ip daddr @never goto refuse
        ip daddr @own goto refuse
        ip saddr . ip daddr @networks goto counted
        ip daddr @closed ip daddr != @granted goto refuse
        ip saddr @open goto counted
        ip saddr . ip daddr @hosts goto counted
        goto refuse
    }}
    chain counted {{
        ct status ! confirmed jump new_connection
        accept
    }}
    chain new_connection {{
        {count}
        add @begun {{ ip saddr limit rate over {begun}/second burst {begun_burst} packets }} goto refuse
    }}
    chain inbound {{
        ip daddr @open accept
        ip daddr . ip saddr @hosts accept
        ip daddr . ip saddr @networks accept
        icmp type {{ destination-unreachable, time-exceeded, parameter-problem }} accept
    }}
    chain refuse {{
        add @refused {{ ip saddr limit rate over {refusals}/second burst {refusals} packets }} drop
        meta l4proto tcp reject with tcp reset
        reject with icmp type admin-prohibited
    }}
}}
"""
"""Refused packets are answered, so that programs fail at once instead of waiting. ``inbound`` does not check the state
of a connection, because the machine's own table forwards only established ones. An ICMP error may come from any hop. A
connection is *confirmed* after its first packet, so ``new_connection`` sees each one once."""
_COUNT = "add @counted {{ ip saddr ct count over {connections} }} goto refuse"
_MOST_SANDBOXES = 65535


@dataclass(frozen=True, slots=True)
class ClosedNetworks:
    """What no sandbox may reach. ``granted`` are the operator's exceptions from ``private``, not from ``never``."""

    never: tuple[IPv4Network, ...]
    private: tuple[IPv4Network, ...]
    granted: tuple[IPv4Network, ...] = ()


def rules(gateway: IPv4Address, closed: ClosedNetworks, limits: NetworkLimits, *, counts: bool = True) -> str:
    """The router's rules, for ``nft``. ``counts=False`` is for kernels that cannot count open connections."""
    return RULES.format(
        gateway=gateway,
        uplink=UPLINK,
        most=_MOST_SANDBOXES,
        count=_COUNT.format(connections=limits.connections) if counts else "",
        begun=limits.new_connections_per_sec,
        begun_burst=limits.new_connections_burst,
        questions=limits.questions_per_sec,
        questions_burst=limits.questions_burst,
        refusals=limits.refusals_per_sec,
        never=", ".join(map(str, closed.never)),
        closed=_elements(closed.private),
        granted=_elements(closed.granted),
    )


@dataclass(frozen=True, slots=True)
class Element:
    """A member of one of the sets. ``last`` is the end of an interval."""

    group: SetName
    first: bytes
    last: bytes = b""


def member(interface: str, sandbox: IPv4Address) -> Element:
    """A sandbox with a network. It has to use this interface and this source address."""
    return Element("members", interface.encode().ljust(16, b"\0") + sandbox.packed)


def everything(sandbox: IPv4Address) -> Element:
    return Element("open", sandbox.packed)


def host(sandbox: IPv4Address, address: IPv4Address) -> Element:
    """An address of an allowed name."""
    return Element("hosts", sandbox.packed + address.packed)


def network(sandbox: IPv4Address, allowed: IPv4Network) -> Element:
    return Element(
        "networks",
        sandbox.packed + allowed.network_address.packed,
        sandbox.packed + allowed.broadcast_address.packed,
    )


def own(address: IPv4Address) -> Element:
    """An address of this machine, which no sandbox may reach."""
    return Element("own", address.packed)


class Firewall:
    """The set elements of the router's table. A call takes far less than a millisecond, so the loop may wait."""

    def __init__(self) -> None:
        """A thread in the router's namespace has to construct it."""
        self._kernel = NetlinkSocket(NETFILTER)
        self._turn = threading.Lock()

    def close(self) -> None:
        self._kernel.close()

    def change(self, *, add: Iterable[Element] = (), remove: Iterable[Element] = ()) -> None:
        """Applies both in one transaction."""
        messages = [_request(_DELETE_ELEMENT, element) for element in remove]
        messages += [_request(_NEW_ELEMENT, element, CREATE) for element in add]
        if messages:
            self._transact(messages)

    def forget(self, sandbox: IPv4Address) -> None:
        """Deletes the counters of an address, so that its next sandbox starts at zero.

        A delete fails for a missing element, and only the kernel knows which exist, so each is added first."""
        counters = [Element(name, sandbox.packed) for name in _COUNTERS]
        added = [_request(_NEW_ELEMENT, element, CREATE) for element in counters]
        self._transact([*added, *(_request(_DELETE_ELEMENT, element) for element in counters)])

    def _transact(self, messages: list[Message]) -> None:
        begin, end = (Message(kind, struct.pack("!BBH", socket.AF_UNSPEC, 0, _SUBSYSTEM)) for kind in _BATCH)
        with self._turn:
            self._kernel.transact(begin, messages, end)


def _request(kind: int, element: Element, flags: int = 0) -> Message:
    packed = nested(_KEY, attribute(_VALUE, element.first))
    if element.last:
        packed += nested(_KEY_END, attribute(_VALUE, element.last))
    body = (
        struct.pack("!BBH", _FAMILY_INET, 0, 0)
        + text(_ELEMENTS_TABLE, TABLE)
        + text(_ELEMENTS_SET, element.group)
        + nested(_ELEMENTS, nested(_ELEMENT, packed))
    )
    return Message(kind, body, flags)


def _elements(networks: Iterable[IPv4Network]) -> str:
    joined = ", ".join(map(str, networks))
    return f"elements = {{ {joined} }}" if joined else ""
