"""A disk that ended while somebody wanted to measure it."""

from __future__ import annotations

from seatrial.sandboxes.host.disk_image import Disk
from seatrial.sandboxes.host.storage import DiskMeter


def test_an_ended_disk_takes_nothing() -> None:
    """It is made here as ``end`` leaves it: a real ``end`` shuts down the file system of its folder."""
    ended = object.__new__(Disk)
    ended._top = ended._image = -1
    meter = DiskMeter(ended, 1 << 20)
    assert (meter.measure(), meter.notice()) == (0, 0)
