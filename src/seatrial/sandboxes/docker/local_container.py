"""A container that runs on this machine, reached as root without the engine: its views, processes and memory kills.

``sandbox_container`` prefers it to the engine's archives, which cost the engine more than a small file is worth.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from seatrial.sandboxes.docker.client import USUAL_SOCKET
from seatrial.sandboxes.host.in_root import closing, is_kernel_file
from seatrial.sandboxes.host.private_mounts import PrivateMounts
from seatrial.sandboxes.host.processes import kill_family, memory_kills, neighbours, stat_of
from seatrial.sandboxes.host.strain import Strain, strain_of
from seatrial.sandboxes.host.view import SandboxView
from seatrial.system.openat2 import IN_ROOT, NO_MAGICLINKS, has_openat2, openat2

_CLOSED = -1
_FIRST_PROCESSES = 2
_STARTING_SEC = 0.5
_PEER = struct.Struct("3i")
_CGROUPS = Path("/sys/fs/cgroup")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def runs_here(host: str) -> bool:
    """Whether that engine's containers are processes of this machine, and this process may enter them."""
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
    # If the engine runs in another process namespace, as for a worker that only got the socket, it has no number here.
    return bool(_PEER.unpack(peer)[0] > 0)


@dataclass(frozen=True, slots=True)
class Layers:
    """Where the files of a running container are on this machine: an overlay's directories and the volumes."""

    changes: Path
    image: tuple[Path, ...]
    """The topmost layer first."""
    volumes: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    """Files of the engine that the container may write to: its names and name servers."""

    @classmethod
    def found(cls, inspected: Mapping[str, Any]) -> Self | None:
        """From the engine's description of a container that runs here; ``None`` if the engine keeps no overlay."""
        places = (inspected.get("GraphDriver") or {}).get("Data") or {}
        changes, image = places.get("UpperDir") or "", (places.get("LowerDir") or "").split(":")
        volumes = [entry["Source"] for entry in inspected.get("Mounts") or () if entry.get("Type") == "volume"]
        if not all(path and Path(path).is_dir() for path in (changes, *image, *volumes)):
            return None
        named = (inspected.get(name) for name in ("HostsPath", "ResolvConfPath", "HostnamePath"))
        files = [Path(path) for path in named if path]
        return cls(Path(changes), tuple(map(Path, image)), tuple(map(Path, volumes)), tuple(files))

    @property
    def written(self) -> tuple[Path, ...]:
        """Everything that the container can fill."""
        return (self.changes, *self.volumes, *self.files)


class LocalContainer:
    """A running container as this machine's kernel knows it."""

    def __init__(self, mounts: PrivateMounts, pid: int, process: int) -> None:
        self._mounts = mounts
        self._pid = pid
        self._process = process
        self._memory = _memory_account(pid)
        self._cpu = _cpu_group(pid)
        self.view = SandboxView(mounts, os.dup(process))
        """What the agent sees."""

    @classmethod
    def found(cls, mounts: PrivateMounts, container: str, pid: int) -> LocalContainer | None:
        """``None`` if the container's first process is not visible here, or is in another user namespace."""
        try:
            process = os.pidfd_open(pid)
        except OSError:
            return None
        try:
            place = Path("/proc", str(pid))
            ours = (place / "ns/user").readlink() == Path("/proc/self/ns/user").readlink()
            if ours and container in (place / "cgroup").read_text():
                local = cls(mounts, pid, process)
                if local.alive:  # so what was read is about this process, not about a later one with its number
                    return local
                local.view.close()
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
        """Processes that the memory limit killed; ``None`` if it cannot be read."""
        try:
            return memory_kills(self._memory.read_text()) if self._memory is not None else None
        except OSError:
            return None

    @property
    def strain(self) -> Strain:
        """How often its limits held it up."""
        return strain_of(self._cpu, self._memory.parent if self._memory is not None else None)

    def kill_command(self, mark: str) -> None:
        """Ends the command whose environment has this entry, and what belongs to it. Blocking."""
        until = time.monotonic() + _STARTING_SEC
        while (leader := self._leader(mark.encode())) is None and time.monotonic() < until:
            time.sleep(0.01)  # the engine may be about to start it
        if leader is not None:
            kill_family(leader, self.processes)

    def _leader(self, mark: bytes) -> int | None:
        """The first process of a marked command. The engine starts it from outside, so its parent is not inside."""
        processes = self.processes()
        for process in processes:
            with suppress(OSError):
                environment = Path(f"/proc/{process}/environ").read_bytes()
                if stat_of(process).parent not in processes and mark in environment.split(b"\0"):
                    return process
        return None

    def processes(self) -> set[int]:
        """Those of the agent's container and of the sidecar, which share a process namespace."""
        return neighbours(self._pid) if self.alive else set()

    async def forbid_devices(self) -> bool:
        """Mounts the root, ``/tests`` and ``/logs`` ``nodev``; ``False`` where the kernel refuses. The verifier's view
        is a copy of the agent's, so this holds for both."""
        try:
            await self._mounts.start(self.view.forbid_devices, "/", "/tests", "/logs")
        except OSError:
            return False
        return True

    def has_commands(self, container: str) -> bool:
        """Whether processes of the container run beside its init and the one that waits."""
        mine = 0
        for process in self.processes():
            with suppress(OSError):
                mine += container in Path(f"/proc/{process}/cgroup").read_text()
        return mine > _FIRST_PROCESSES

    def view_of(self, number: int, container: str) -> SandboxView | None:
        """What another process sees: ``number`` is the sandbox's for it, ``container`` the one that it must be of."""
        # Everything goes through the opened directory, which means this process even if its number is reused. A sandbox
        # that may mount could have put something else in the place of ``/proc``.
        with (
            suppress(OSError),
            closing(os.open(f"/proc/{self._pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as root,
            closing(openat2(root, f"proc/{number}", _DIRECTORY, IN_ROOT | NO_MAGICLINKS)) as place,
        ):
            if self.alive and is_kernel_file(place) and container in _read("cgroup", place):
                return SandboxView(self._mounts, os.open("ns/mnt", os.O_RDONLY | os.O_CLOEXEC, dir_fd=place))
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
    """The file in which the kernel counts memory kills of a process's cgroup."""
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


def _cpu_group(pid: int) -> Path | None:
    """The cgroup in which the kernel counts a process's processor time."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        legacy = "cpu" in controllers.split(",")
        place = (_CGROUPS / "cpu" if legacy else _CGROUPS) / path.lstrip("/")
        if (legacy or not controllers) and (place / "cpu.stat").is_file():
            return place
    return None
