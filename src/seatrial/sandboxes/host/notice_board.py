"""Small files that sandboxes can read and not change, and that this process rewrites while they run.

They are in memory, in a mount of the threads of ``PrivateMounts``, so nothing of them stays when the process ends. A
sandbox borrows a directory of it (``lent_tree``); what it sees of the mount names no path of this machine.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from seatrial.sandboxes.host.private_mounts import MS_NODEV, MS_NOEXEC, MS_NOSUID, PrivateMounts, mount

_LIMITS = "size=64m,mode=755"


@dataclass(frozen=True, slots=True)
class NoticeBoard:
    """A directory in memory that one sandbox borrows."""

    mounts: PrivateMounts
    directory: Path
    """For threads of ``mounts``: others do not see it."""

    async def write(self, name: str, content: bytes) -> None:
        """A reader sees the file as it was or as it is, never a part of it."""
        await self.mounts.start(self._write, name, content)

    async def remove(self) -> None:
        await self.mounts.start(self._remove)

    def _write(self, name: str, content: bytes) -> None:
        written = self.directory / f".{name}"
        with written.open("wb") as file:
            os.fchmod(file.fileno(), 0o444)
            file.write(content)
        written.rename(self.directory / name)

    def _remove(self) -> None:
        with suppress(OSError):
            for path in self.directory.iterdir():
                path.unlink()
            self.directory.rmdir()


class NoticeBoards:
    """One per process."""

    def __init__(self, mounts: PrivateMounts, place: Path) -> None:
        """``place`` is where the memory is mounted; on this machine it stays an empty directory."""
        self._mounts = mounts
        self._place = place
        self._lock = Lock()
        self._is_mounted = False

    async def new(self) -> NoticeBoard:
        """Its owner removes it. Raises ``OSError`` where this process may not mount."""
        return NoticeBoard(self._mounts, await self._mounts.start(self._make))

    def _make(self) -> Path:
        with self._lock:
            if not self._is_mounted:
                self._place.mkdir(parents=True, exist_ok=True)
                mount("seatrial", self._place, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, _LIMITS)
                self._is_mounted = True
        directory = self._place / uuid.uuid4().hex[:12]
        directory.mkdir()
        directory.chmod(0o755)  # whatever the umask is: the agent may be any user
        return directory
