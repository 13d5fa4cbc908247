"""Locks between processes. The kernel releases them when a process ends."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


@asynccontextmanager
async def file_lock(*paths: Path, shared: bool = False) -> AsyncIterator[None]:
    """Waits for the lock of one of the files without blocking the loop. Cancelling the wait is safe.

    With several files, as many callers of all processes hold a lock at once as there are files."""
    handles: list[int] = []
    try:
        handles.extend(map(open_lock, paths))
        pause = 0.01
        while not any(try_lock(handle, shared=shared) for handle in handles):
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.25)
        yield
    finally:
        for handle in handles:
            os.close(handle)


def open_lock(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def try_lock(handle: int, *, shared: bool) -> bool:
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
