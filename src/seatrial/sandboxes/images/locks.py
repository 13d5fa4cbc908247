"""Locks between processes, and the records of which image is in use. Both die with the process that holds them."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path


@asynccontextmanager
async def file_lock(path: Path, *, shared: bool = False) -> AsyncIterator[None]:
    """Waits for the lock without blocking the loop; cancelling the wait is safe."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        pause = 0.01
        while not try_lock(handle, shared=shared):
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.5)
        yield
    finally:
        os.close(handle)


@asynccontextmanager
async def any_lock(paths: Sequence[Path]) -> AsyncIterator[None]:
    """Waits for one of several locks: as many holders at once as there are paths, over all processes."""
    handles: list[int] = []
    try:
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            handles.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
        while not any(try_lock(handle, shared=False) for handle in handles):  # noqa: ASYNC110 - other processes hold them
            await asyncio.sleep(0.05)
        yield
    finally:
        for handle in handles:
            os.close(handle)


def try_lock(handle: int, *, shared: bool) -> bool:
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class UseRecords:
    """One small file per image: its time says when it was used last, a shared lock on it that it is used now."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, tuple[int, int]] = {}

    def note(self, digest: str) -> bool:
        """Records a use. False if the image is being removed at this moment."""
        handle = self._open(digest)
        try:
            if not try_lock(handle, shared=True):
                return False
            os.utime(handle)
            return True
        finally:
            os.close(handle)

    @contextmanager
    def hold(self, digest: str) -> Iterator[None]:
        """In use until the context ends. One descriptor per image, however many sandboxes of this process use it."""
        handle, count = self._held.get(digest, (-1, 0))
        if count == 0:
            handle = self._open(digest)
            fcntl.flock(handle, fcntl.LOCK_SH)
        self._held[digest] = (handle, count + 1)
        try:
            yield
        finally:
            self._release(digest)

    def last_used(self, digest: str) -> float:
        """Seconds since the epoch; 0 for an image that was never used."""
        try:
            return self._path(digest).stat().st_mtime
        except FileNotFoundError:
            return 0.0

    @contextmanager
    def removing(self, digest: str, idle_sec: float) -> Iterator[bool]:
        """Whether the image may go: nobody holds it and nobody used it within ``idle_sec``. Keeps users out."""
        unused = self.last_used(digest) == 0
        handle = self._open(digest)
        try:
            idle = unused or time.time() - os.fstat(handle).st_mtime >= idle_sec
            free = idle and try_lock(handle, shared=False)
            yield free
        finally:
            os.close(handle)

    def forget(self, digest: str) -> None:
        self._path(digest).unlink(missing_ok=True)

    def _release(self, digest: str) -> None:
        handle, count = self._held.pop(digest)
        if count > 1:
            self._held[digest] = (handle, count - 1)
            return
        os.utime(handle)
        os.close(handle)

    def _path(self, digest: str) -> Path:
        return self._folder / digest.replace(":", "-")

    def _open(self, digest: str) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        return os.open(self._path(digest), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
