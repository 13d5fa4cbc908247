"""Listeners for the network tests: on this machine, and in a namespace of their own that stands for the internet.

The tests' claims are about connections that must not come about, so each of these really listens, and each test first
shows that it can be reached from where that is allowed.
"""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import LIMIT_SEC

GREETING = "hello from outside"
PORT = 8377
METADATA = "169.254.169.254"
# Documentation addresses: public by every rule, and nobody's.
MACHINE, ALLOWED, OTHER = "203.0.113.1", "203.0.113.2", "203.0.113.3"

_SERVE = f"""
import socket, sys, threading
def serve(listener):
    while True:
        connection, _ = listener.accept()
        connection.sendall(b"{GREETING}\\n")
        connection.close()
for listener in [socket.create_server((address, {PORT})) for address in sys.argv[1:]]:
    threading.Thread(target=serve, args=(listener,)).start()
print("listening", flush=True)
"""


@dataclass(frozen=True)
class Outside:
    allowed: str = ALLOWED
    other: str = OTHER
    metadata: str = METADATA
    port: int = PORT


def fetch(address: str, port: int = PORT, connect_sec: float = LIMIT_SEC) -> str:
    """The shell command with which a sandbox tries to get the greeting. The limit is that of the connection alone."""
    connect = f'IO::Socket::INET->new(PeerAddr => "{address}", PeerPort => {port}, Timeout => {connect_sec:g})'
    return f"perl -MIO::Socket::INET -e '$s = {connect} || exit 1; sysread $s, $said, 100; print $said'"


def reach(address: str, port: int = PORT) -> str:
    """The same from this machine."""
    with socket.create_connection((address, port), timeout=LIMIT_SEC) as connection:
        return connection.makefile().read().strip()


@contextmanager
def outside(run_dir: Path) -> Iterator[Outside]:
    """Two public addresses and the metadata address of clouds. One test at a time has them."""
    with (run_dir / "outside.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        name = f"outside{os.getpid()}"
        host_end, far_end = f"so{os.getpid()}a", f"so{os.getpid()}b"
        _ip("netns", "add", name)
        server = None
        try:
            _ip("link", "add", host_end, "type", "veth", "peer", "name", far_end, "netns", name)
            _ip("addr", "add", f"{MACHINE}/24", "dev", host_end)
            _ip("link", "set", host_end, "up")
            for address in (f"{ALLOWED}/24", f"{OTHER}/24", f"{METADATA}/32"):
                _ip("-n", name, "addr", "add", address, "dev", far_end)
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", far_end, "up")
            _ip("-n", name, "route", "add", "default", "via", MACHINE)
            _ip("route", "replace", f"{METADATA}/32", "via", ALLOWED)
            server = subprocess.Popen(
                ["ip", "netns", "exec", name, sys.executable, "-c", _SERVE, ALLOWED, OTHER, METADATA],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert server.stdout is not None and server.stdout.readline() == "listening\n"
            yield Outside()
        finally:
            if server is not None:
                server.kill()
                server.wait()
                assert server.stdout is not None
                server.stdout.close()
            subprocess.run(["ip", "link", "del", host_end], capture_output=True, check=False)
            _ip("netns", "del", name)


@contextmanager
def machine_listener() -> Iterator[int]:
    """A service of this machine, as its API, database or broker is: on every address it has."""
    with socket.create_server(("0.0.0.0", 0)) as listener:
        thread = threading.Thread(target=_greet, args=(listener,), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def machine_addresses() -> list[str]:
    listing = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=True).stdout
    return [line.split()[3].partition("/")[0] for line in listing.splitlines() if " lo " not in line]


def _greet(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.sendall(f"{GREETING}\n".encode())


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
