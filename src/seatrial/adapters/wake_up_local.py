"""Wakes the workers of one machine: those of this process at once, those of other processes within 0.1 s.

Processes share one small file: an announcement appends a byte, and a waiting worker checks the size several times a
second. A check is one system call, survives crashes, and leaves no socket behind.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from seatrial.domain.trial import Trial
from seatrial.ports.store import Heartbeat
from seatrial.system.file_owner import open_owned

_LOOK_SEC = 0.1
_LARGEST = 1 << 16


class LocalWakeUp:
    """One per process and event loop; ``wait`` is called by one worker at a time."""

    def __init__(self, home: Path, look_sec: float = _LOOK_SEC) -> None:
        self._sign = home / "wake"
        self._look_sec = look_sec
        self._announced = asyncio.Event()
        self._seen = self._size()

    async def announce(self, trials: int = 1) -> None:
        """Wakes all workers; each of them then asks the store for trials."""
        self._announced.set()
        self._sign.parent.mkdir(parents=True, exist_ok=True)
        file = open_owned(self._sign, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            if os.fstat(file).st_size >= _LARGEST:
                os.ftruncate(file, 0)
            os.write(file, b".")
        finally:
            os.close(file)

    async def wait(self, timeout: float) -> None:
        """Also returns for an announcement between the last ``wait`` and this one."""
        deadline = asyncio.get_running_loop().time() + timeout
        while not self._announced.is_set() and self._size() == self._seen:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return
            try:
                async with asyncio.timeout(min(left, self._look_sec)):
                    await self._announced.wait()
            except TimeoutError:
                continue
        self._announced.clear()
        self._seen = self._size()

    def runs(self, trial: Trial) -> None:
        pass

    def ended(self, trial: Trial) -> None:
        pass

    async def tend(self, about: Heartbeat | None = None) -> None:
        """There is nothing to repair: each look opens the file anew."""

    async def close(self) -> None:
        pass

    def _size(self) -> int:
        try:
            return self._sign.lstat().st_size
        except FileNotFoundError:
            return 0
