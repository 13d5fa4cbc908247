"""Processes named so that a reused process id is never taken for the one that died."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class ProcessName:
    """A process of some machine, for as long as that machine is up."""

    host: str
    pid: int
    started: int
    """The kernel's start time of the process, in ticks since boot."""

    @classmethod
    def mine(cls) -> Self:
        return cls(socket.gethostname(), os.getpid(), start_time(os.getpid()) or 0)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        host, _, rest = text.rpartition(":")
        host, _, pid = host.rpartition(":")
        return cls(host, int(pid), int(rest)) if host and pid.isdigit() and rest.isdigit() else None

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}:{self.started}"

    @property
    def folder(self) -> str:
        """The name of a directory that belongs to this process."""
        return f"{self.pid}-{self.started}-{self.host}"

    @classmethod
    def of_folder(cls, name: str) -> Self | None:
        """Whose directory that is; ``None`` for one with another kind of name."""
        pid, _, rest = name.partition("-")
        started, _, host = rest.partition("-")
        return cls(host, int(pid), int(started)) if pid.isdigit() and started.isdigit() and host else None

    @property
    def is_dead(self) -> bool:
        """Surely gone. A process of another machine is never called dead from here."""
        return self.host == socket.gethostname() and start_time(self.pid) != self.started


def start_time(pid: int) -> int | None:
    """When a process started, in ticks since boot; ``None`` when there is none, or it is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def is_dead(name: str) -> bool:
    """Whether the process of this name is surely gone; names of another form are left to their lease."""
    process = ProcessName.parse(name)
    return process is not None and process.is_dead


def die_with(parent: int) -> bool:
    """Ends this process at once when its parent ends, however that happens; ``False`` if the parent is gone already."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    return os.getppid() == parent
