"""A port that is chosen now and used later is not taken meanwhile by whoever asks for any port."""

from __future__ import annotations

import socket
from pathlib import Path

from seatrial.testing.lasting_port import lasting_port


def test_it_is_below_those_that_the_kernel_gives() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(1024 <= lasting_port() < lowest for _ in range(20))


def test_it_can_be_used() -> None:
    with socket.create_server(("127.0.0.1", lasting_port())) as server:
        assert server.getsockname()[1]
