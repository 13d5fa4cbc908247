"""Which process is meant, and whether it is still there.

The only notion of a process's identity. Worker names, work folders, sandbox records and firewall tables are made of it.
A process number alone is not enough: numbers come again, they mean something else in another PID namespace, and host
names are shared by containers.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from seatrial.domain.frozen import Frozen

_PR_SET_PDEATHSIG = 1
_GONE_STATES = ("Z", "X", "x")
_FOLDER = re.compile(r"(\d+)-(\d+)-(\d+)-([0-9a-f]+)-(.+)")


class ProcessIdentity(Frozen):
    """One process, never taken for another one: not for a later one, not for one of another namespace or machine."""

    pid: int
    started: int
    """The kernel's start time of the process, in ticks since boot."""
    namespace: int = 0
    """Inode of the PID namespace that ``pid`` belongs to; 0 in what older versions wrote, which do not say it."""
    boot: str = ""
    """Tells starts of machines apart; see ``boot_id``."""

    @classmethod
    def mine(cls) -> ProcessIdentity:
        return _identity_of(os.getpid())

    @property
    def is_dead(self) -> bool:
        """Surely gone. Nothing is certain about a process of another machine, boot or PID namespace."""
        return self._is_seen_here and start_time(self.pid) != self.started

    @property
    def lives(self) -> bool:
        """Whether it may still run, for things that do not outlive a boot of the machine they were made on."""
        if self._boot != boot_id():
            return False
        return not self.is_dead

    @property
    def _boot(self) -> str:
        return _short(self.boot)  # older versions wrote all of it

    @property
    def _is_seen_here(self) -> bool:
        """Whether this process sees the other one under the same number. A ``/proc`` of another PID namespace shows
        other processes under our numbers."""
        return self.namespace != 0 and self.namespace == own_namespace() and self._boot == boot_id() and _proc_is_ours()


@dataclass(frozen=True, slots=True)
class WorkerName:
    """A worker process and its host, which is there for people. As text: ``host:pid:…``."""

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
        """``None`` for a name of another form; older versions did not say the namespace."""
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
        """Whose directory that is; ``None`` for one with another kind of name."""
        found = _FOLDER.fullmatch(name)
        if not found:
            return None
        pid, started, namespace, boot, host = found.groups()
        return cls(host, ProcessIdentity(pid=int(pid), started=int(started), namespace=int(namespace), boot=boot))


def is_dead(worker: str) -> bool:
    """Whether the worker of this name is surely gone; all others are left to their lease."""
    name = WorkerName.parse(worker)
    return name is not None and name.process.is_dead


def start_time(pid: int | str) -> int | None:
    """When a process started, in ticks since boot; ``None`` when there is none, or it is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in _GONE_STATES else int(fields[19])


def own_namespace() -> int:
    """Inode of this process's PID namespace; 0 where the kernel does not tell."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Another one after each start of a machine; empty where the kernel does not tell."""
    try:
        return _short(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    except OSError:
        return ""


def _short(boot: str) -> str:
    """48 random bits tell machines apart, and leave a worker's name readable."""
    return boot.replace("-", "")[:12]


def _proc_is_ours() -> bool:
    """``unshare --pid`` without a new ``/proc`` shows the processes of the namespace outside."""
    try:
        return Path("/proc/self").readlink().name == str(os.getpid())
    except OSError:
        return False


@lru_cache(maxsize=1)
def _identity_of(pid: int) -> ProcessIdentity:
    """The same for as long as a process lives; one that was forked asks for its own."""
    started = start_time("self") or 0
    return ProcessIdentity(pid=pid, started=started, namespace=own_namespace(), boot=boot_id())


def die_with(parent: int) -> bool:
    """Ends this process at once when its parent ends, however that happens; ``False`` if the parent is gone already."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    return os.getppid() == parent
