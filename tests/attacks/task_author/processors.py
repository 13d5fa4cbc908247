"""How much of the machine's processors a process may use, as the kernel has it."""

from __future__ import annotations

from pathlib import Path

from tests.host_processes import processes_with
from tests.waiting import eventually


async def started(token: str) -> int:
    """The number of the process that has this word as an argument, once there is one."""
    await eventually(lambda: processes_with(f"sleep\0{token}"), f"a process with {token}")
    return processes_with(f"sleep\0{token}")[0]


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
