"""One machine, several worker processes: the machine is protected while any of them is busy, and ends when the last has
left.

Each process holds shared file locks: one while it lives, one while it is busy. The kernel drops the locks of a dead
process, so no process can keep a machine forever, and none gives up a protection that another one needs.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path

from seatrial.ports.platform import ScaleInProtection

_LOOK_SEC = 0.05


class MachineLock:
    """A lock that many processes of this machine share, until one of them gets it alone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    async def share(self) -> None:
        """Waits while a process has it alone."""
        if self._handle is None:
            self._handle = self._open()
        while not _locks(self._handle, fcntl.LOCK_SH):  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(_LOOK_SEC)

    def leave_and_take_alone(self) -> bool:
        """Gives up the share. ``True`` if nobody else has one; this process then has it alone until ``leave``."""
        self.leave()
        handle = self._open()
        if _locks(handle, fcntl.LOCK_EX):
            self._handle = handle
            return True
        os.close(handle)
        return False

    def leave(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _open(self) -> int:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


class SharedProtection:
    """The protection of this machine for all of its worker processes."""

    def __init__(self, machine: ScaleInProtection, busy: MachineLock) -> None:
        self._machine = machine
        self._busy = busy

    @property
    def renew_sec(self) -> float | None:
        return self._machine.renew_sec

    async def protect(self) -> None:
        """Takes the share first, so that a process that releases at this moment sees it, or has finished before."""
        await self._busy.share()
        await self._machine.protect()

    async def release(self) -> None:
        if not self._busy.leave_and_take_alone():
            return
        try:
            await self._machine.release()
        finally:
            self._busy.leave()


def _locks(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
