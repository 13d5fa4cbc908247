"""How long ``seatrial up`` takes from the start of its process to its first answer, on an installation that exists."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from benchmarks.place import Place
from benchmarks.row import Row

_LIMIT_SEC = 2.0
_PATIENCE_SEC = 60.0


async def measure(place: Place) -> list[Row]:
    return await asyncio.to_thread(_measure, place)


def _measure(place: Place) -> list[Row]:
    home = place.scratch / "api-start"
    _start_once(home)  # makes the database, and Python's bytecode
    seconds = statistics.median(_start_once(home) for _ in range(place.count(9, 3)))
    return [Row("API start: process to /health", f"{seconds:.2f} s", f"< {_LIMIT_SEC:g} s", seconds < _LIMIT_SEC)]


def _start_once(home: Path) -> float:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("seatrial")
    environment = {**os.environ, "SEATRIAL_HOME": str(home)}
    began = time.perf_counter()
    with subprocess.Popen(
        [program, "up", "--port", str(port), "--workers", "0"], env=environment, stdout=subprocess.DEVNULL
    ) as process:
        try:
            _until_healthy(port, began + _PATIENCE_SEC)
            return time.perf_counter() - began
        finally:
            process.send_signal(signal.SIGTERM)


def _until_healthy(port: int, deadline: float) -> None:
    while time.perf_counter() < deadline:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=_PATIENCE_SEC) as answer,
        ):
            if answer.status == 200:
                return
        time.sleep(0.005)
    raise TimeoutError(f"no answer within {_PATIENCE_SEC:g} s")
