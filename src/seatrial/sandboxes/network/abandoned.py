"""Connections of removed sandboxes in the machine's table of connections. The kernel would keep them for days.

Each trial could leave thousands, and the table usually has 262,144 places for the whole machine. To delete them the
kernel has to walk the table, so that happens only when a good part of it is used.
"""

from __future__ import annotations

import errno
import socket
import struct
from ipaddress import IPv4Address

from seatrial.sandboxes.network.namespace import get_value
from seatrial.sandboxes.network.netlink import NETFILTER, Message, NetlinkSocket, attribute, nested, number

_DELETE = 1 << 8 | 2
_TUPLE_ORIGINAL, _TUPLE_IP, _IP_SOURCE = 1, 1, 1
_FILTER, _FILTER_ORIGINAL, _BY_SOURCE = 25, 1, 1


class AbandonedConnections:
    """The addresses of removed sandboxes. A thread in the machine's namespace has to construct it."""

    def __init__(self, crowded: int) -> None:
        """See ``NetworkLimits.crowded``."""
        self._kernel = NetlinkSocket(NETFILTER)
        self._crowded = crowded
        self._left: set[IPv4Address] = set()

    def close(self) -> None:
        self._kernel.close()

    def add(self, sandbox: IPv4Address) -> None:
        """Call this with the address of a removed sandbox."""
        self._left.add(sandbox)

    def discard(self, sandbox: IPv4Address) -> None:
        """Call this when the address belongs to a sandbox again."""
        self._left.discard(sandbox)

    def clear(self) -> None:
        """Deletes their connections if the table is crowded. That blocks for some milliseconds for each address."""
        if self._left and self._is_crowded():
            left, self._left = self._left, set()
            # ENOENT: there was none. EOPNOTSUPP and EINVAL: a kernel before 5.8 deletes only single connections.
            tolerated = frozenset({errno.ENOENT, errno.EOPNOTSUPP, errno.EINVAL})
            self._kernel.request([_all_of(address) for address in left], tolerate=tolerated)

    def _is_crowded(self) -> bool:
        try:
            used, room = (int(get_value(f"netfilter/nf_conntrack_{name}")) for name in ("count", "max"))
        except (OSError, ValueError):
            return False
        return self._crowded == 0 or used * self._crowded > room


def _all_of(sandbox: IPv4Address) -> Message:
    source = nested(_TUPLE_ORIGINAL, nested(_TUPLE_IP, attribute(_IP_SOURCE, sandbox.packed)))
    wanted = nested(_FILTER, number(_FILTER_ORIGINAL, _BY_SOURCE))
    return Message(_DELETE, struct.pack("!BBH", socket.AF_INET, 0, 0) + source + wanted)
