"""The identity of a process, and whether the process still runs.

Worker names, work folders, sandbox records and firewall tables use this identity. A process id alone is not enough: ids
are used again, differ between PID namespaces, and containers may share a host name.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from seatrial.domain.frozen import Frozen

_PR_SET_PDEATHSIG = 1
_GONE_STATES = ("Z", "X", "x")
_FOLDER = re.compile(r"(\d+)-(\d+)-(\d+)-([0-9a-f]+)-(.+)")


class ProcessIdentity(Frozen):
    """Identifies one process, also among later processes, other namespaces and other machines."""

    pid: int
    started: int
    """The kernel's start time of the process, in ticks since boot."""
    namespace: int = 0
    """Inode of the PID namespace of ``pid``; 0 if an older version wrote it."""
    boot: str = ""
    """Identifies one boot of one machine; see ``boot_id``."""

    @classmethod
    def mine(cls) -> ProcessIdentity:
        return _identity_of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """The process that has this number now, in the PID namespace of this process; ``None`` if there is none."""
        started = start_time(pid)
        return None if started is None else cls(pid=pid, started=started, namespace=own_namespace(), boot=boot_id())

    @property
    def is_on_this_machine(self) -> bool:
        """Whether it began in this boot of this machine, in whichever namespace."""
        return _short(self.boot) == boot_id()  # older versions wrote the whole boot id

    @property
    def is_of_this_namespace(self) -> bool:
        """Whether its number means the same process to us."""
        return self.namespace != 0 and self.namespace == own_namespace() and self.is_on_this_machine

    @property
    def is_dead(self) -> bool:
        """Whether the process is certainly gone. False for another machine, boot or PID namespace."""
        # ``/proc`` may belong to another PID namespace
        return self.is_of_this_namespace and _proc_is_ours() and start_time(self.pid) != self.started

    @property
    def lives(self) -> bool:
        """Whether it may still run. For things that do not survive a reboot of their machine."""
        return self.is_on_this_machine and not self.is_dead


@dataclass(frozen=True, slots=True)
class WorkerName:
    """A worker process, with its host name for users. As text: ``host:pid:…``."""

    host: str
    process: ProcessIdentity

    @classmethod
    def mine(cls) -> Self:
        return cls(socket.gethostname(), ProcessIdentity.mine())

    def __str__(self) -> str:
        process = self.process
        return f"{self.host}:{process.pid}:{process.started}-{process.namespace}-{process.boot}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """``None`` for a name of another form. Names of older versions have no namespace."""
        host, _, rest = text.rpartition(":")
        host, _, pid = host.rpartition(":")
        return cls.of_folder(f"{pid}-{rest}-{host}")

    @property
    def folder(self) -> str:
        """The name of a directory that belongs to this process."""
        process = self.process
        return f"{process.pid}-{process.started}-{process.namespace}-{process.boot}-{self.host}"

    @classmethod
    def of_folder(cls, name: str) -> Self | None:
        """The process of a directory; ``None`` for another kind of name."""
        found = _FOLDER.fullmatch(name)
        if not found:
            return None
        pid, started, namespace, boot, host = found.groups()
        return cls(host, ProcessIdentity(pid=int(pid), started=int(started), namespace=int(namespace), boot=boot))


def is_dead(worker: str) -> bool:
    """Whether the worker of this name is certainly gone. For all others the lease decides."""
    name = WorkerName.parse(worker)
    return name is not None and name.process.is_dead


def start_time(pid: int | str) -> int | None:
    """Start time of a process, in ticks since boot; ``None`` for a zombie or no process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in _GONE_STATES else int(fields[19])


def own_namespace() -> int:
    """Inode of the PID namespace of this process; 0 if unknown."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Changes with each boot of a machine; empty if unknown."""
    try:
        return _short(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    except OSError:
        return ""


def _short(boot: str) -> str:
    """48 random bits are enough, and keep the name of a worker short."""
    return boot.replace("-", "")[:12]


def _proc_is_ours() -> bool:
    """False after ``unshare --pid`` without a new ``/proc``, which shows the outer namespace."""
    try:
        return Path("/proc/self").readlink().name == str(os.getpid())
    except OSError:
        return False


@lru_cache(maxsize=1)
def _identity_of(pid: int) -> ProcessIdentity:
    """Cached by process id, so that a forked process reads its own."""
    started = start_time("self") or 0
    return ProcessIdentity(pid=pid, started=started, namespace=own_namespace(), boot=boot_id())


@contextmanager
def on_signals(call: Callable[[], object]) -> Iterator[None]:
    """Calls this for each SIGINT and SIGTERM while the block runs, on the running event loop."""
    loop, numbers = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, call)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def die_with(parent: int) -> bool:
    """Makes the kernel end this process when its parent ends. ``False`` if the parent is gone already."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    return os.getppid() == parent
