"""Threads that share a mount namespace of their own, so that mounts vanish with this process.

``pod`` mounts and starts containers here, ``transfer`` and ``accounts`` look into running sandboxes. A mount namespace
belongs to a thread on Linux, so no helper process is needed: the threads of ``PrivateMounts`` left the process's
namespace, everything they start inherits theirs, and the rest of the process notices nothing.

While a thread is inside a sandbox it must not import, log or open anything of the host by path.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from seatrial.sandboxes.own_time import clock_stopped
from seatrial.system.fair_threads import FairThreads

MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
_MNT_DETACH = 2
_UMOUNT_NOFOLLOW = 8

_STARTERS = 4
"""Threads that start processes. Short work only, so that no exec waits behind a long transfer."""
_CARRIERS = 8
"""Threads for transfers and removals that end soon."""
_LONG_CARRIERS = 2
"""Long transfers run two at a time, in turns. They switch to the kernel all the time, so more of them would not be
faster and only slow others down."""


class PrivateMounts:
    """Two sets of threads in one private mount namespace."""

    def __init__(self) -> None:
        self._namespace: int | None = None
        self._lock = threading.Lock()
        self._starters = FairThreads("sandbox-start", _STARTERS, settle=self._settle)
        self._carriers = FairThreads("sandbox-files", _CARRIERS, _LONG_CARRIERS, settle=self._settle)

    async def start[**P, T](self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs short blocking work, such as starting a process. Goes on to its end even if the caller is cancelled.

        No time limit of the caller's runs meanwhile: see ``own_time``."""
        with clock_stopped():
            return await self._starters.run(work, *args, **kwargs)

    async def carry[**P, T](self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for work that may take long. The work calls ``yield_turn`` regularly."""
        with clock_stopped():
            return await self._carriers.run(work, *args, **kwargs)

    def root_of(self, process: int) -> int:
        """Opens the root that a process sees; ``process`` is a descriptor of it or of its mount namespace.

        What is done with the descriptor is done by ``in_root``, from outside: nothing but this one name, which no
        sandbox can change, is ever looked up inside."""
        with self.inside(process):
            return os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    @contextmanager
    def inside(self, process: int) -> Iterator[None]:
        """Has the calling thread see what a process sees; ``process`` is its pidfd. Paths are then the sandbox's."""
        os.setns(process, os.CLONE_NEWNS)
        try:
            yield
        finally:
            self._return()

    @contextmanager
    def rooted(self, root: Path) -> Iterator[None]:
        """Has the calling thread see nothing but a directory: links in it cannot lead out."""
        os.chroot(root)
        os.chdir("/")
        try:
            yield
        finally:
            self._return()

    def _return(self) -> None:
        assert self._namespace is not None
        os.setns(self._namespace, os.CLONE_NEWNS)

    def _settle(self) -> None:
        """Called in each thread as it starts."""
        with self._lock:
            if self._namespace is not None:
                os.unshare(os.CLONE_FS)
                os.setns(self._namespace, os.CLONE_NEWNS)
                return
            os.unshare(os.CLONE_NEWNS)
            mount(None, Path("/"), None, MS_REC | MS_PRIVATE)
            for hierarchy in _unified_beside_legacy():
                # crun 1.8 refuses to start where it sees both; the limits are in the legacy ones.
                unmount(hierarchy)
            self._namespace = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)


def mount(source: str | Path | None, target: Path, kind: str | None, flags: int, data: str = "") -> None:
    arguments = [None if value is None else os.fsencode(value) for value in (source, target, kind)]
    if libc().mount(*arguments, ctypes.c_ulong(flags), data.encode() or None) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {kind or ''}: {os.strerror(code)}", str(target))


def unmount(target: Path, *, at_once: bool = True) -> None:
    """Detaches a mount, which ends with its last user. Without ``at_once`` there must be no user, and it has ended."""
    if libc().umount2(os.fsencode(target), (_MNT_DETACH if at_once else 0) | _UMOUNT_NOFOLLOW) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"umount: {os.strerror(code)}", str(target))


@cache
def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _unified_beside_legacy() -> list[Path]:
    fields = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    kinds = {entry[4]: entry[entry.index("-") + 1] for entry in fields}
    if "cgroup" not in kinds.values():
        return []
    return [Path(target) for target, kind in kinds.items() if kind == "cgroup2"]
