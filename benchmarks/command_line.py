"""How long ``seatrial --help`` takes, and that the command line loads neither LiteLLM nor Harbor for it."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.place import Place
from benchmarks.row import Row, shown

_LIMIT_SEC = 0.4
_HEAVY = ("litellm", "harbor")


async def measure(place: Place) -> list[Row]:
    return await asyncio.to_thread(_measure, place)


def _measure(place: Place) -> list[Row]:
    count = place.count(10, 3)
    programs = Path(sys.executable).parent
    ours = _median([str(programs / "seatrial"), "--help"], count)
    stock = _median([str(programs / "harbor"), "--help"], place.count(3, 1))
    code = f"import sys, seatrial.cli.main; print(*[name for name in {_HEAVY!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return [
        Row(
            f"seatrial --help (median of {count})",
            shown(ours),
            f"< {_LIMIT_SEC:g} s",
            ours < _LIMIT_SEC,
            f"harbor --help {shown(stock)}",
            ours / stock,
        ),
        Row("heavy modules the command line loads", ", ".join(loaded) or "none", "none", not loaded),
    ]


def _median(command: Sequence[str], count: int) -> float:
    times = []
    for _ in range(count):
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - started)
    return statistics.median(times)
