"""Checks the free space of an installation's disk. Below a limit nothing new starts.

Called by workers before a claim, by uploads before they are read, and by ``/ready``.
"""

from __future__ import annotations

import os
from pathlib import Path

from seatrial.errors import StorageFull


class Disk:
    """The file system of one folder. Each check is one system call."""

    def __init__(self, folder: Path, low_water_mb: int) -> None:
        self._folder = folder
        self._low_water = low_water_mb << 20

    @property
    def free_bytes(self) -> int:
        """Bytes that this process may still write; 0 if the folder cannot be checked."""
        try:
            facts = os.statvfs(self._folder)
        except OSError:
            return 0
        return facts.f_bavail * facts.f_frsize

    def shortage(self, wanted_bytes: int = 0) -> str:
        """Why nothing of this size should start, in one sentence; empty if there is room."""
        free = self.free_bytes
        if free - wanted_bytes >= self._low_water:
            return ""
        return f"{self._folder} has {free >> 20} MB left; below {self._low_water >> 20} MB nothing new starts."

    def require(self, wanted_bytes: int = 0) -> None:
        """Raises ``StorageFull`` if there is a shortage."""
        if why := self.shortage(wanted_bytes):
            raise StorageFull(why, fix="Free some space (`seatrial gc`), or lower SEATRIAL_DISK_LOW_WATER_MB.")
