"""Records of which image is in use. The kernel releases them when a process ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial.system.file_locks import open_lock, try_lock


class UseRecords:
    """One small file for each image. Its time is that of the last use, and a shared lock on it means a use now."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, tuple[int, int]] = {}

    def note(self, digest: str) -> bool:
        """Records a use. False if the image is being removed at this moment."""
        handle = open_lock(self._path(digest))
        try:
            if not try_lock(handle, shared=True):
                return False
            os.utime(handle)
            return True
        finally:
            os.close(handle)

    @contextmanager
    def hold(self, digest: str) -> Iterator[None]:
        """Marks the image as used until the context ends. All sandboxes of this process share one descriptor."""
        handle, count = self._held.get(digest, (-1, 0))
        if count == 0:
            handle = open_lock(self._path(digest))
            fcntl.flock(handle, fcntl.LOCK_SH)
        self._held[digest] = (handle, count + 1)
        try:
            yield
        finally:
            handle, count = self._held.pop(digest)
            if count > 1:
                self._held[digest] = (handle, count - 1)
            else:
                os.utime(handle)
                os.close(handle)

    def last_used(self, digest: str) -> float:
        """Seconds since the epoch. 0 for an image that was never used."""
        try:
            return self._path(digest).stat().st_mtime
        except FileNotFoundError:
            return 0.0

    @contextmanager
    def removing(self, digest: str, idle_sec: float) -> Iterator[bool]:
        """Whether the image may be removed: it is not in use and was not used within ``idle_sec``. Blocks new uses."""
        unused = self.last_used(digest) == 0
        handle = open_lock(self._path(digest))
        try:
            idle = unused or time.time() - os.fstat(handle).st_mtime >= idle_sec
            free = idle and try_lock(handle, shared=False)
            yield free
        finally:
            os.close(handle)

    def forget(self, digest: str) -> None:
        self._path(digest).unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self._folder / digest.replace(":", "-")
