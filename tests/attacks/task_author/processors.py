"""How much of the machine's processors a process may use, as the kernel has it."""

from __future__ import annotations

import asyncio
from pathlib import Path


async def started(token: str) -> int:
    """The number of the process that has this word as an argument, once there is one."""
    while True:
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = place.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"sleep") and token.encode() in words:
                return int(place.parent.name)
        await asyncio.sleep(0.05)


def allowed_processors(process: int) -> float | None:
    """The smallest limit of its cgroups; ``None`` without any."""
    found = []
    for line in Path(f"/proc/{process}/cgroup").read_text().splitlines():
        _, names, inside = line.split(":", 2)
        if names and "cpu" not in names.split(","):
            continue
        root = next(path for path in (Path("/sys/fs/cgroup", names), Path("/sys/fs/cgroup/cpu")) if path.is_dir())
        place = root / inside.lstrip("/")
        while place.is_relative_to(root):
            found += _limits_of(place)
            place = place.parent
    return min(found, default=None)


def _limits_of(place: Path) -> list[float]:
    unified, quota, period = place / "cpu.max", place / "cpu.cfs_quota_us", place / "cpu.cfs_period_us"
    if unified.is_file():
        most, _, of = unified.read_text().partition(" ")
        return [] if most == "max" else [int(most) / int(of)]
    if quota.is_file() and (most_us := int(quota.read_text())) > 0:
        return [most_us / int(period.read_text())]
    return []
