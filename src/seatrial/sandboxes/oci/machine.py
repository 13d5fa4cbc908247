"""What this process needs to run daemonless sandboxes, made once and shared by all of them and all event loops."""

from __future__ import annotations

import os
import resource
from functools import cached_property, lru_cache
from pathlib import Path

from seatrial.errors import SetupProblem
from seatrial.sandboxes.host.cgroups import Cgroups
from seatrial.sandboxes.host.container_defaults import DOCKER_CAPABILITIES
from seatrial.sandboxes.host.disk_image import DiskImages
from seatrial.sandboxes.host.seccomp import CompiledFilters, seccomp_filter
from seatrial.sandboxes.host.storage import StorageWatch
from seatrial.sandboxes.host.tools import HostTools
from seatrial.sandboxes.network.network_set import SharedNetworks
from seatrial.sandboxes.oci.container_spec import Confinement
from seatrial.sandboxes.oci.runtime import Runtime, busybox

_OPEN_FILES = 1 << 20
_CAPABILITIES_BY_NUMBER = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
]


class Machine:
    """The tools of this machine, found when they are first needed."""

    def __init__(self, cache: Path, runtime: str = "") -> None:
        """``runtime`` is the operator's choice of one; empty for the first that works."""
        self._wanted_runtime = runtime
        self.run_dir = cache / "run"
        self._cache = cache
        host = HostTools.shared(cache)
        self.mounts, self.notices = host.mounts, host.notices
        self.disks = DiskImages(self.run_dir)
        self.storage = StorageWatch(self.run_dir)
        self.networks = SharedNetworks()
        self.commands_lead_sessions: bool | None = None
        """Whether the runtime gives each command a session; found out by the first sandbox."""
        self._dying: set[int] = set()

    @classmethod
    def shared(cls, cache: Path, runtime: str = "") -> Machine:
        """The one of this process. A forked process gets its own."""
        return _shared(cache, runtime, os.getpid())

    def reap(self, processes: set[int]) -> None:
        """Reaps killed processes that may have no other parent: if this process is the machine's first, as in a
        container, orphans become its children."""
        for process in list(self._dying | processes):
            self._dying.add(process)
            try:
                if os.waitpid(process, os.WNOHANG)[0]:
                    self._dying.discard(process)
            except ChildProcessError:
                self._dying.discard(process)

    @cached_property
    def runtime(self) -> Runtime:
        if os.geteuid() != 0:
            raise SetupProblem("The oci sandbox needs root.", fix="Run as root, or use --sandbox docker.")
        _allow_many_files()
        return Runtime.found(self._wanted_runtime)

    @cached_property
    def busybox(self) -> Path:
        return busybox()

    @cached_property
    def cgroups(self) -> Cgroups:
        return Cgroups.found()

    @cached_property
    def filters(self) -> CompiledFilters:
        return CompiledFilters(self._cache / "seccomp", self.runtime.version)

    @cached_property
    def aligns_processes(self) -> bool:
        return Path("/proc/sys/kernel/ns_last_pid").exists()

    @cached_property
    def confinement(self) -> Confinement:
        """What commands may do; without CAP_MKNOD where device nodes cannot be filtered."""
        capabilities = tuple(
            name for name in DOCKER_CAPABILITIES if name != "CAP_MKNOD" or self.cgroups.filters_devices
        )
        return Confinement(
            capabilities=capabilities,
            commands=seccomp_filter(capabilities),
            first_process=seccomp_filter(capabilities, nests_processes=True),
            open_files=_file_limit(),
        )

    @cached_property
    def privileged(self) -> Confinement:
        """For tasks that request it, if the operator allows it."""
        return Confinement(
            capabilities=_held_capabilities(),
            commands=None,
            first_process=None,
            open_files=_file_limit(),
            privileged=True,
        )


@lru_cache(maxsize=8)
def _shared(cache: Path, runtime: str, _process: int) -> Machine:
    return Machine(cache, runtime)


def _allow_many_files() -> None:
    """Hundreds of sandboxes hold a few descriptors each."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _file_limit() -> int:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)


def _held_capabilities() -> tuple[str, ...]:
    status = Path("/proc/self/status").read_text()
    held = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapBnd:")), 16)
    return tuple(f"CAP_{name}" for number, name in enumerate(_CAPABILITIES_BY_NUMBER) if held >> number & 1)
