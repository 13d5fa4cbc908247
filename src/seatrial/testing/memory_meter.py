"""A machine whose memory is as short as a test says."""

from __future__ import annotations

from seatrial.domain.fleet.pressure import MemoryReading


class MemoryMeter:
    """Give it to a ``MemoryBrake``; change ``available_percent`` while a worker runs."""

    def __init__(self, available_percent: float = 100.0, stalled_percent: float | None = None) -> None:
        self.available_percent = available_percent
        self.stalled_percent = stalled_percent
        self.reads = 0

    def __call__(self) -> MemoryReading:
        self.reads += 1
        available = int(100 * self.available_percent)
        return MemoryReading(total_mb=10_000, available_mb=available, stalled_percent=self.stalled_percent)
