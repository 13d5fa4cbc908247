"""What the worker processes of a machine use: each writes it to a small file of its own, all in one folder.

A process locks its file as long as it lives, so a file without a lock belongs to a dead process. The kernel removes the
lock with the process, also in another PID namespace.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from seatrial.domain.fleet.packing import NOTHING, Size, total

_TURN_PATIENCE_SEC = 1.0
_LOOK_SEC = 0.01
_SUFFIX = ".room"


class FileMachineUsage:
    def __init__(self, folder: Path, name: str) -> None:
        """``name`` is for people; a process may have several files."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._name = f"{name}-{secrets.token_hex(4)}{_SUFFIX}"
        self._turn = os.open(folder / "turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._own = os.open(folder / self._name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._own, fcntl.LOCK_EX)
        self.declare(NOTHING)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[bool]:
        until = time.monotonic() + _TURN_PATIENCE_SEC
        while not (mine := _locked(self._turn, fcntl.LOCK_EX)) and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SEC)
        try:
            yield mine
        finally:
            if mine:
                fcntl.flock(self._turn, fcntl.LOCK_UN)

    def others(self) -> Size:
        with os.scandir(self._folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(_SUFFIX) and entry.name != self._name]
        return total(map(self._held_by, names)) if names else NOTHING

    def declare(self, held: Size) -> None:
        os.pwrite(self._own, f"{held.memory_mb:>15} {held.cpus:>15.3f}\n".encode(), 0)

    def close(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self._folder / self._name).unlink()
        os.close(self._own)
        os.close(self._turn)

    def _held_by(self, name: str) -> Size:
        try:
            file = os.open(self._folder / name, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return NOTHING
        try:
            if _locked(file, fcntl.LOCK_SH):  # its process is dead
                with contextlib.suppress(FileNotFoundError):
                    (self._folder / name).unlink()
                return NOTHING
            memory, cpus = os.pread(file, 64, 0).split()
            return Size(memory_mb=int(memory), cpus=float(cpus))
        except ValueError:
            return NOTHING
        finally:
            os.close(file)


def _locked(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
