"""``seatrial up`` as a person starts it, for tests that ask it over HTTP or send it signals."""

from __future__ import annotations

import json
import signal
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from seatrial.processes import start_time
from tests.command_line import CommandLine, Done, Running, until

_START_SEC = 60.0


@dataclass(frozen=True)
class Up:
    running: Running
    address: str

    @classmethod
    def start(cls, cli: CommandLine, *options: str, **environment: str) -> Self:
        """Any free port, unless the options name one; returns once it answers."""
        chosen = options if "--port" in options else ("--port", "0", *options)
        running = cli.start("up", *chosen, **environment)
        until(lambda: "is up:" in running.out.read_text() or running.process.poll() is not None, _START_SEC, "up")
        assert running.process.poll() is None, running.err.read_text()
        first = running.out.read_text().splitlines()[0]
        return cls(running, first.rpartition(" ")[2])

    def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON; status 0 where nothing answers."""
        try:
            with urllib.request.urlopen(self.address + path, timeout=10) as answer:
                return int(answer.status), json.load(answer)
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.load(refusal)
        except OSError:
            return 0, None

    def until_ready(self, seconds: float = _START_SEC) -> None:
        until(lambda: self.get("/ready")[0] == 200, seconds, "ready")

    @property
    def workers(self) -> list[int]:
        """The processes it started that are alive."""
        children = Path(f"/proc/{self.running.pid}/task/{self.running.pid}/children").read_text().split()
        return [int(child) for child in children if start_time(int(child)) is not None]

    @property
    def log(self) -> str:
        return self.running.err.read_text()

    def tell(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.running.signal(number)

    def ended(self, seconds: float) -> Done:
        return self.running.wait(seconds)
