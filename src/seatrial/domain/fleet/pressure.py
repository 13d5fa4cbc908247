"""When a machine is too short of memory to start another trial: claims stop before the kernel has to kill."""

from __future__ import annotations

from pydantic import Field

from seatrial.domain.frozen import Frozen

STALL_PERCENT = 10.0
"""Share of the last ten seconds in which a process waited for memory (PSI ``some avg10``) that stops claims …"""
STALL_BELOW_PERCENT = 25.0
"""… while less than this is available. A sandbox at its own limit stalls, too, and says nothing about the machine."""


class MemoryReading(Frozen):
    """The memory of the machine, or of the cgroup that limits the worker."""

    total_mb: int = Field(gt=0)
    available_mb: int
    """What processes can still get, without what the kernel can only free by killing."""
    stalled_percent: float | None = None
    """``None`` where the kernel does not measure it."""

    @property
    def available_percent(self) -> float:
        return 100.0 * max(self.available_mb, 0) / self.total_mb


def shortage(reading: MemoryReading, low_water_percent: float) -> str:
    """Why no trial should start, in one sentence; empty if there is enough memory. 0 % switches the brake off."""
    if low_water_percent <= 0:
        return ""
    left = f"{reading.available_mb} of {reading.total_mb} MB of memory"
    if reading.available_percent < low_water_percent:
        return f"Only {left} are available; below {low_water_percent:g} % nothing new starts."
    stalled = reading.stalled_percent or 0.0
    if stalled >= STALL_PERCENT and reading.available_percent < STALL_BELOW_PERCENT:
        return f"Processes waited for memory {stalled:.0f} % of the last ten seconds, and {left} are available."
    return ""
