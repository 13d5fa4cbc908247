"""A port for a server of a test that is started later, or stopped and started again."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_LOWEST = 10_000


def lasting_port() -> int:
    """A free port of loopback that nobody is given by chance: outside of the range from which the kernel takes ports
    for connections and for those who ask for any. One of that range may be taken while its server is down."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(_LOWEST, max(first, _LOWEST + 1)), k=max(first - _LOWEST, 1)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("There is no free port below those that the kernel gives out.")
