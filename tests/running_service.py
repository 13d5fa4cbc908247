"""``seatrial up`` as a person starts it: a process of its own, by default on a free port of the loopback address.

``service_up`` is for tests that only need a service to ask; those that send it signals begin with
``RunningService.start``, and the command line's ``with`` ends whatever they leave running.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx

from seatrial.system.processes import start_time
from tests.command_line import CommandLine, Done, Running
from tests.waiting import LIMIT_SEC, until

_START_SEC = 180.0
"""It takes a second or two; on a machine that makes an image besides, many more."""


@dataclass(frozen=True)
class RunningService:
    """Its address, and where its log goes: that of its workers too."""

    url: str
    running: Running

    @classmethod
    def start(cls, cli: CommandLine, *arguments: str, **environment: str) -> Self:
        """Any free port, unless the arguments name one; returns once it says that it is up."""
        chosen = arguments if "--port" in arguments else ("--port", "0", *arguments)
        running = cli.start("up", *chosen, **environment)

        def address() -> re.Match[str] | None:
            assert running.process.poll() is None, running.err.read_text()
            return re.search(r"is up: (http://\S+)", running.out.read_text())

        until(address, "the service says its address", _START_SEC)
        found = address()
        assert found is not None
        return cls(found[1], running)

    @property
    def address(self) -> tuple[str, int]:
        found = httpx.URL(self.url)
        return found.host, found.port or 80

    @property
    def logs(self) -> tuple[Path, Path]:
        return self.running.out, self.running.err

    @property
    def log(self) -> str:
        return self.running.err.read_text()

    @property
    def workers(self) -> list[int]:
        """The workers it started that are alive."""
        return [child for child in self._children() if child != self.api]

    @property
    def api(self) -> int:
        """The process that answers: the first that was started, and never replaced."""
        return self._children()[0]

    def _children(self) -> list[int]:
        children = Path(f"/proc/{self.running.pid}/task/{self.running.pid}/children").read_text().split()
        return sorted((int(child) for child in children if start_time(int(child)) is not None), key=_age)

    def client(self, **options: object) -> httpx.Client:
        return httpx.Client(base_url=self.url, trust_env=False, timeout=120, **options)  # type: ignore[arg-type]

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=LIMIT_SEC)

    def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON; status 0 where nothing answers."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=LIMIT_SEC) as answer:
                return int(answer.status), json.load(answer)
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.load(refusal)
        except OSError:
            return 0, None

    def until_ready(self, seconds: float = _START_SEC) -> None:
        until(lambda: self.get("/ready")[0] == 200, "ready", seconds)

    def tell(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.running.signal(number)

    def ended(self, seconds: float = _START_SEC) -> Done:
        return self.running.wait(seconds)


def _age(pid: int) -> tuple[int, int]:
    return start_time(pid) or 0, pid


@contextmanager
def service_up(cli: CommandLine, *arguments: str, **environment: str) -> Iterator[RunningService]:
    """Ready to answer inside; told to stop afterwards, and made to."""
    service = RunningService.start(cli, *arguments, **environment)
    try:
        yield service
    finally:
        _stop(service.running)


def _stop(running: Running) -> None:
    """Twice, so that trials under way are given back; one that does not go is made to."""
    for patience in (1, LIMIT_SEC):
        with suppress(subprocess.TimeoutExpired):
            running.signal(signal.SIGTERM)
            running.process.wait(patience)
            return
    running.end()
