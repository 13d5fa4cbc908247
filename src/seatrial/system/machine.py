"""Memory and processors that this process may use: of the machine, or of the cgroup that limits it.

Workers size themselves by it and stop claiming when memory gets short. Both versions of cgroups, and both at once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from seatrial.domain.fleet.pressure import MemoryReading, shortage

_MB = 1 << 20
_FRESH_SEC = 0.2
"""A reading is used again for this long: a busy worker claims a hundred times a second."""
_NO_LIMIT = 1 << 60
"""Version 1 writes a number near 2⁶³ for no limit."""


class _Group(NamedTuple):
    """One cgroup that contains this process, of version 1 or 2."""

    path: Path
    unified: bool


class Hardware:
    """What is under ``root``; tests give a folder with the same files."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    @property
    def memory_mb(self) -> int:
        return min([self._meminfo("MemTotal"), *(limit for _, limit in self._memory_limits())]) // _MB

    @property
    def cpus(self) -> float:
        there = len(os.sched_getaffinity(0))
        return min([float(there), *(quota for group in self._groups("cpu") if (quota := _quota(group)))])

    @property
    def gpus(self) -> int:
        """GPUs of NVIDIA, by their driver's files."""
        return sum(1 for _ in (self._root / "proc/driver/nvidia/gpus").glob("*"))

    def memory(self) -> MemoryReading:
        """The tightest of the machine and the cgroups around this process."""
        total, free = self._meminfo("MemTotal"), self._meminfo("MemAvailable")
        tightest, stalled = (total, free), _stalled(self._root / "proc/pressure/memory")
        for group, limit in self._memory_limits():
            left = limit - _used(group)
            if left / limit < tightest[1] / tightest[0]:
                tightest = (limit, left)
                stalled = _stalled(group.path / "memory.pressure") if group.unified else stalled
        return MemoryReading(
            total_mb=max(tightest[0] // _MB, 1), available_mb=tightest[1] // _MB, stalled_percent=stalled
        )

    def _memory_limits(self) -> Iterator[tuple[_Group, int]]:
        for group in self._groups("memory"):
            limit = _number(group.path / ("memory.max" if group.unified else "memory.limit_in_bytes"))
            if limit is not None and 0 < limit < min(_NO_LIMIT, self._meminfo("MemTotal")):
                yield group, limit

    def _groups(self, controller: str) -> Iterator[_Group]:
        """The cgroups around this process, the innermost first. A container may see only the outermost one."""
        mounted = self._root / "sys/fs/cgroup"
        for line in _text(self._root / "proc/self/cgroup").splitlines():
            number, names, path = line.split(":", 2)
            unified = number == "0" and not names
            if not unified and controller not in names.split(","):
                continue
            top = mounted if unified else mounted / controller
            inner = top / path.lstrip("/")
            while inner != top and top in inner.parents:
                yield _Group(inner, unified)
                inner = inner.parent
            yield _Group(top, unified)

    def _meminfo(self, name: str) -> int:
        for line in _text(self._root / "proc/meminfo").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class MemoryBrake:
    """Says why no trial should start now. Called before each claim."""

    def __init__(
        self,
        read: Callable[[], MemoryReading],
        low_water_percent: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._low_water_percent = low_water_percent
        self._clock = clock
        self._said = ""
        self._said_at = float("-inf")

    def __call__(self) -> str:
        now = self._clock()
        if now - self._said_at >= _FRESH_SEC:
            self._said, self._said_at = shortage(self._read(), self._low_water_percent), now
        return self._said


def _quota(group: _Group) -> float | None:
    if group.unified:
        quota, _, period = _text(group.path / "cpu.max").strip().partition(" ")
        return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None
    allowed, each = _number(group.path / "cpu.cfs_quota_us"), _number(group.path / "cpu.cfs_period_us")
    return allowed / each if allowed and each and allowed > 0 else None


def _used(group: _Group) -> int:
    """Without file pages that the kernel can drop at once."""
    current = _number(group.path / ("memory.current" if group.unified else "memory.usage_in_bytes")) or 0
    name = "inactive_file" if group.unified else "total_inactive_file"
    for line in _text(group.path / "memory.stat").splitlines():
        if line.startswith(f"{name} "):
            return max(current - int(line.split()[1]), 0)
    return current


def _stalled(path: Path) -> float | None:
    """``some avg10`` of a PSI file."""
    first = _text(path).partition("\n")[0].split()
    found = [word.removeprefix("avg10=") for word in first if word.startswith("avg10=")]
    return float(found[0]) if found else None


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.lstrip("-").isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
