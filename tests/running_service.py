"""``seatrial up`` as an operator starts it: a process of its own on a free port of the loopback address."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.command_line import CommandLine, Running, until


@dataclass(frozen=True)
class RunningService:
    """Its address, and where its log goes: that of its workers too."""

    url: str
    running: Running

    @property
    def address(self) -> tuple[str, int]:
        found = httpx.URL(self.url)
        return found.host, found.port or 80

    @property
    def logs(self) -> tuple[Path, Path]:
        return self.running.out, self.running.err

    def client(self, **options: object) -> httpx.Client:
        return httpx.Client(base_url=self.url, trust_env=False, timeout=30, **options)  # type: ignore[arg-type]

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=30)


@contextmanager
def service_up(cli: CommandLine, *arguments: str, **environment: str) -> Iterator[RunningService]:
    """Ready to answer inside; told to stop afterwards, and made to."""
    running = cli.start("up", "--port", "0", *arguments, **environment)

    def address() -> re.Match[str] | None:
        assert running.process.poll() is None, running.err.read_text()
        return re.search(r"is up: (http://\S+)", running.out.read_text())

    until(address, 60, "the service says its address")
    found = address()
    assert found is not None
    try:
        yield RunningService(found[1], running)
    finally:
        _stop(running)


def _stop(running: Running) -> None:
    """Twice, so that trials under way are given back; one that does not go is made to."""
    for patience in (1, 20):
        with suppress(subprocess.TimeoutExpired):
            running.signal(signal.SIGTERM)
            running.process.wait(patience)
            return
    running.end()
