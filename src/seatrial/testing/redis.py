"""A private Redis server in a temporary directory, for tests. Needs the server's program on this machine.

It listens on a port of this machine only, dies with the process that started it, and writes nothing to disk.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

from seatrial.errors import SetupProblem
from seatrial.removal import remove_tree

_START_SEC = 30.0


class RedisServer:
    """``with RedisServer() as server``; then ``server.url``. It can be stopped, and started again at the same place."""

    def __init__(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise SetupProblem("There is no Redis server on this machine.", fix="apt-get install redis-server")
        self._program = program
        self._directory = Path(tempfile.mkdtemp(prefix="seatrial-redis-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        remove_tree(self._directory)

    def start(self) -> None:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._directory)]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig=TERM", self._program, *options],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        self._wait_until_ready()

    def stop(self) -> None:
        """Everything that it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_START_SEC)
        self._process = None

    def command(self, *words: str) -> bytes:
        """Sends one command as plain text and returns the first line of the answer."""
        with socket.create_connection(("127.0.0.1", self.port), _START_SEC) as connection:
            connection.sendall(" ".join(words).encode() + b"\r\n")
            return connection.makefile("rb").readline().strip()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SEC
        while True:
            try:
                if self.command("PING") == b"+PONG":
                    return
            except OSError:
                pass
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise SetupProblem(f"Redis did not start:\n{(self._directory / 'log').read_text()[-2000:]}")
            time.sleep(0.02)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
