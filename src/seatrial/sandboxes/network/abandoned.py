"""Connections that a sandbox left open, in the machine's table: nobody ends them, and the kernel keeps them for days.

Each trial could leave thousands, and the table has some 262,144 places for the whole machine. They are harmless while
there is room, and to look for them means to walk the table, so that is done only once a good part of it is in use.
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
    """Those of sandboxes that are gone. Must be made by a thread in the machine's namespace."""

    def __init__(self, crowded: int) -> None:
        """The table is crowded once one in so many places is taken; 0 for always."""
        self._kernel = NetlinkSocket(NETFILTER)
        self._crowded = crowded
        self._left: set[IPv4Address] = set()

    def close(self) -> None:
        self._kernel.close()

    def add(self, sandbox: IPv4Address) -> None:
        """An address whose sandbox is gone."""
        self._left.add(sandbox)

    def discard(self, sandbox: IPv4Address) -> None:
        """An address that has a sandbox again."""
        self._left.discard(sandbox)

    def clear(self) -> None:
        """Removes them if the table is crowded. Blocks for some milliseconds for each address then."""
        if self._left and self._is_crowded():
            left, self._left = self._left, set()
            # ENOENT: there was none. EOPNOTSUPP and EINVAL: a kernel before 5.8, which can only be asked for one each.
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
