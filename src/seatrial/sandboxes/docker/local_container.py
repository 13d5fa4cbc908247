"""What a process of a container sees, reached without asking the engine: the container runs here, and we are root.

``sandbox_container`` takes it instead of the engine's archives wherever it can be had (``Residence``), since each of
those costs the engine more than a small file is worth. The rules of ``host.transfer`` hold: paths are resolved inside
the sandbox, and nothing that is in it is trusted.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from seatrial.errors import SandboxFault
from seatrial.growing_files import FileView
from seatrial.openat2 import IN_ROOT, NO_MAGICLINKS, has_openat2, openat2
from seatrial.sandboxes.docker.client import USUAL_SOCKET
from seatrial.sandboxes.host.accounts import Account, find_account
from seatrial.sandboxes.host.in_root import SandboxRoot, closing, is_kernel_file
from seatrial.sandboxes.host.private_mounts import PrivateMounts
from seatrial.sandboxes.host.root_mount import nodev
from seatrial.sandboxes.host.transfer import LeftOut, Transfer, TransferLimits
from seatrial.sandboxes.oci.command import kill_family

_CLOSED = -1
_FIRST_PROCESSES = 2
_STARTING_SEC = 0.5
_PEER = struct.Struct("3i")
_CGROUPS = Path("/sys/fs/cgroup")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def runs_here(host: str) -> bool:
    """Whether that engine's containers are processes of this machine that we, as root, may enter and look around in."""
    address = urlsplit(host or USUAL_SOCKET)
    if os.geteuid() != 0 or address.scheme != "unix" or not has_openat2():
        return False
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(address.path)
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    except OSError:
        return False
    # A process of another process namespace, as for a worker that was only handed the socket, has no number here.
    return bool(_PEER.unpack(peer)[0] > 0)


class LocalView:
    """One mount namespace, from ``__init__`` to ``close``; implements ``files.Files``."""

    def __init__(self, mounts: PrivateMounts, entrance: int) -> None:
        """``entrance`` is a descriptor of a process or of a mount namespace, and is closed with this."""
        self._mounts = mounts
        self._entrance: int | None = entrance
        self._lock = threading.Lock()

    async def put_file(self, source: Path, target: str) -> None:
        await self._mounts.carry(self._with_transfer, lambda transfer: transfer.put_file(source, target))

    async def put_tree(self, source: Path, target: str) -> None:
        await self._mounts.carry(self._with_transfer, lambda transfer: transfer.put_tree(source, target))

    async def get_file(self, source: str, target: Path, limits: TransferLimits) -> None:
        await self._mounts.carry(self._with_transfer, lambda transfer: transfer.get_file(source, target, limits))

    async def get_tree(self, source: str, target: Path, limits: TransferLimits, first: Sequence[str] = ()) -> LeftOut:
        return await self._mounts.carry(
            self._with_transfer, lambda transfer: transfer.get_tree(source, target, limits, first=first)
        )

    async def make_dirs(self, paths: list[str], mode: int) -> None:
        await self._mounts.start(self._with_transfer, lambda transfer: transfer.make_dirs(paths, mode))

    async def make_executable(self, path: str) -> bool:
        """``chmod +x`` as root; ``False`` where a command has to say what is wrong."""
        try:
            return await self._mounts.start(self._with_transfer, lambda transfer: transfer.make_executable(path))
        except OSError:
            return False

    async def is_dir(self, path: str) -> bool:
        return await self._mounts.start(self._with_transfer, lambda transfer: transfer.is_dir(path))

    async def is_file(self, path: str) -> bool:
        return await self._mounts.start(self._with_transfer, lambda transfer: transfer.is_file(path))

    async def look(
        self, folders: Mapping[str, str], seen: Mapping[str, int], wanted: Callable[[str], bool]
    ) -> list[FileView]:
        """What grows in these directories."""
        return await self._mounts.carry(self._with_transfer, lambda transfer: transfer.look(folders, seen, wanted))

    async def account(self, wanted: str) -> Account:
        """A user of the sandbox, from its own files."""
        return await self._mounts.start(self._find_account, wanted)

    async def forbid_devices(self) -> bool:
        """Has no device node work outside ``/dev``; ``False`` where the kernel refuses. The verifier's view is a copy
        of the agent's, so this is for both."""
        return await self._mounts.start(self._forbid_devices)

    def close(self) -> None:
        """Work that is under way goes on to its end."""
        with self._lock:
            entrance, self._entrance = self._entrance, None
        if entrance is not None:
            os.close(entrance)

    def _forbid_devices(self) -> bool:
        with self._entered() as entrance, self._mounts.inside(entrance):
            try:
                for place in ("/", "/tests", "/logs"):
                    if place == "/" or os.path.ismount(place):
                        nodev(Path(place))
            except OSError:
                return False
            return True

    def _find_account(self, wanted: str) -> Account:
        with self._entered() as entrance, closing(self._mounts.root_of(entrance)) as root:
            return find_account(SandboxRoot(root), wanted)

    def _with_transfer[T](self, work: Callable[[Transfer], T]) -> T:
        with self._entered() as entrance:
            return work(Transfer(self._mounts, entrance))

    @contextmanager
    def _entered(self) -> Iterator[int]:
        """A descriptor for each piece of work: the number of one that was closed may be that of another sandbox."""
        with self._lock:
            if self._entrance is None:
                raise SandboxFault("The sandbox is gone.")
            entrance = os.dup(self._entrance)
        try:
            yield entrance
        except ProcessLookupError:
            raise SandboxFault("The sandbox is gone: its first process has ended.") from None
        finally:
            os.close(entrance)


class Residence:
    """A running container as this machine's kernel knows it."""

    def __init__(self, mounts: PrivateMounts, pid: int, process: int) -> None:
        self._mounts = mounts
        self._pid = pid
        self._process = process
        self._memory = _memory_account(pid)
        self.view = LocalView(mounts, os.dup(process))
        """What the agent sees."""

    @classmethod
    def found(cls, mounts: PrivateMounts, container: str, pid: int) -> Residence | None:
        """``None`` where the container's first process is not to be seen, or has users of its own counting."""
        try:
            process = os.pidfd_open(pid)
        except OSError:
            return None
        try:
            place = Path("/proc", str(pid))
            ours = (place / "ns/user").readlink() == Path("/proc/self/ns/user").readlink()
            if ours and container in (place / "cgroup").read_text():
                residence = cls(mounts, pid, process)
                if residence.alive:  # so what was read was about this process, and not about a later one of its number
                    return residence
                residence.view.close()
        except OSError:
            pass
        os.close(process)
        return None

    @property
    def alive(self) -> bool:
        try:
            signal.pidfd_send_signal(self._process, 0)
        except OSError:
            return False
        return True

    @property
    def memory_kills(self) -> int | None:
        """Processes that were killed for want of memory; ``None`` if it cannot be read."""
        if self._memory is None:
            return None
        try:
            lines = self._memory.read_text().splitlines()
        except OSError:
            return None
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def kill_command(self, mark: str) -> None:
        """Ends the command whose environment has this entry, and what belongs to it. Blocking."""
        until = time.monotonic() + _STARTING_SEC
        while (leader := self._leader(mark.encode())) is None and time.monotonic() < until:
            time.sleep(0.01)  # the engine may be about to start it
        if leader is not None:
            kill_family(leader, self.processes)

    def _leader(self, mark: bytes) -> int | None:
        """The engine starts a command from outside, so its first process has no parent in the sandbox."""
        processes = self.processes()
        for process in processes:
            place = Path("/proc", str(process))
            with suppress(OSError):
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                if parent not in processes and mark in (place / "environ").read_bytes().split(b"\0"):
                    return process
        return None

    def processes(self) -> set[int]:
        """Of the agent's container and of the sidecar's: they count together."""
        if not self.alive:
            return set()
        wanted = Path(f"/proc/{self._pid}/ns/pid").readlink()
        found = set()
        for place in Path("/proc").iterdir():
            with suppress(OSError):
                if place.name.isdecimal() and (place / "ns/pid").readlink() == wanted:
                    found.add(int(place.name))
        return found

    def has_company(self, container: str) -> bool:
        """Whether more processes of the container live than its init and the one that waits."""
        mine = 0
        for process in self.processes():
            with suppress(OSError):
                mine += container in Path(f"/proc/{process}/cgroup").read_text()
        return mine > _FIRST_PROCESSES

    def view_of(self, number: int, container: str) -> LocalView | None:
        """What another process sees: ``number`` is the sandbox's for it, ``container`` the one that it must be of."""
        try:
            with closing(os.open(f"/proc/{self._pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as root:
                place = openat2(root, f"proc/{number}", _DIRECTORY, IN_ROOT | NO_MAGICLINKS)
        except OSError:
            return None
        try:
            # Everything by way of the opened directory: it stands for this process even when its number is another's.
            # A sandbox that may mount could have put something else in the place of ``/proc``.
            if self.alive and is_kernel_file(place) and container in _read("cgroup", place):
                namespace = os.open("ns/mnt", os.O_RDONLY | os.O_CLOEXEC, dir_fd=place)
                return LocalView(self._mounts, namespace)
        except OSError:
            pass
        finally:
            os.close(place)
        return None

    def close(self) -> None:
        self.view.close()
        process, self._process = self._process, _CLOSED
        if process != _CLOSED:
            os.close(process)


def _read(name: str, directory: int) -> str:
    with open(name, opener=partial(os.open, dir_fd=directory)) as file:
        return file.read()


def _memory_account(pid: int) -> Path | None:
    """Where the kernel counts what the memory limit of a process killed."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        legacy = "memory" in controllers.split(",")
        file = (
            _CGROUPS / "memory" / path.lstrip("/") / "memory.oom_control"
            if legacy
            else _CGROUPS / path.lstrip("/") / "memory.events"
        )
        if (legacy or not controllers) and file.is_file():
            return file
    return None
