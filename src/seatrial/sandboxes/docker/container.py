"""The container of one docker sandbox: how it is described to the engine, and what the engine applied.

The agent has Docker's default capabilities without AUDIT_WRITE, which only the verifier has (see ``sidecar``).
``/tests`` and ``/logs`` are anonymous volumes, because a mount point can be neither removed nor renamed from inside.
"""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from seatrial.errors import SandboxFault
from seatrial.sandboxes.compose import ComposeService
from seatrial.sandboxes.docker.client import EngineClient, EngineRefused
from seatrial.sandboxes.docker.command import EngineCommands, Order
from seatrial.sandboxes.docker.local_container import Layers, LocalContainer
from seatrial.sandboxes.docker.seccomp import Profiles
from seatrial.sandboxes.docker.sidecar_scripts import SEAL, SLEEP
from seatrial.sandboxes.host.container_defaults import DOCKER_CAPABILITIES
from seatrial.sandboxes.host.private_mounts import PrivateMounts
from seatrial.sandboxes.host.processes import memory_kills
from seatrial.sandboxes.host.transfer import Transfer
from seatrial.sandboxes.images.image import Image
from seatrial.sandboxes.network.names import TaskNameServers
from seatrial.sandboxes.record import SandboxRecord

LABEL_RECORD = "seatrial.record"
_LOGS = PurePosixPath("/logs")
_CAPABILITIES = [name.removeprefix("CAP_") for name in DOCKER_CAPABILITIES if name != f"CAP_{SEAL}"]
# The first process ignores every signal that the sandbox can send. It restarts its sleep if that is killed.
# The shell reaps orphans while it waits.
_STAY = [
    *("sh", "-c"),
    "trap '' HUP INT QUIT ABRT USR1 USR2 PIPE ALRM TERM VTALRM PROF XCPU XFSZ;"
    f" while :; do {SLEEP} & wait $!; case $? in 126 | 127) exit 1 ;; esac; done",
]
_KILLS = (
    "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null | grep '^oom_kill ' || true"
)
_KILLS_SEC = 10.0


def labels_of(record: SandboxRecord) -> dict[str, str]:
    """What leftovers are found by."""
    owner = record.owner
    return {
        "seatrial.install": owner.install,
        "seatrial.trial": "" if owner.trial is None else str(owner.trial),
        "seatrial.attempt": "" if owner.try_number is None else str(owner.try_number),
        LABEL_RECORD: record.model_dump_json(),
    }


def may_have_quota(info: Mapping[str, Any]) -> bool:
    """Whether the engine's storage driver can have a quota, if its file system was set up for it."""
    driver, backing = info.get("Driver"), dict(info.get("DriverStatus") or ()).get("Backing Filesystem")
    return driver in ("btrfs", "zfs") or (driver in ("overlay", "overlay2") and backing == "xfs")


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """How the container of a sandbox is made."""

    name: str
    image: Image
    record: SandboxRecord
    env: Mapping[str, str]
    cpus: float
    memory_mb: int
    pids: int
    storage_mb: int
    service: ComposeService
    """From the task's compose file."""
    asked: TaskNameServers = TaskNameServers()  # noqa: RUF009
    workdir: str | None = None
    guards_tests: bool = True


class Container:
    """One container, from ``create`` to ``remove``."""

    def __init__(self, engine: EngineClient, plan: ContainerPlan, mounts: PrivateMounts | None = None) -> None:
        """``mounts`` are given where the engine's containers run on this machine and may be entered."""
        self._engine = engine
        self._mounts = mounts
        self.plan = plan
        self.name = plan.name
        self.labels = labels_of(plan.record)
        self.started = False
        self.id = ""
        self.pid = 0
        """Of its first process, as the engine's machine counts."""
        self.applied: Mapping[str, Any] = {}
        """The host configuration that the engine reports."""
        self.warnings: tuple[str, ...] = ()
        self.profiles = Profiles({}, None)
        self.local: LocalContainer | None = None
        """While it runs, where it can be entered."""
        self.forbids_devices = False
        """Whether device nodes on its root cannot be opened."""
        self.layers: Layers | None = None
        """Where its files are, in the same case."""

    @property
    def limits(self) -> dict[str, Any]:
        memory = self.plan.memory_mb << 20
        return {
            "NanoCpus": int(self.plan.cpus * 1e9),
            "Memory": memory,
            "MemorySwap": memory,
            "PidsLimit": self.plan.pids,
        }

    async def create(self, network: Mapping[str, Any], info: Mapping[str, Any], profiles: Profiles) -> None:
        """``network`` adds to the host configuration; ``info`` is the engine's ``/info``."""
        self.profiles = profiles
        made = await self._created(self._description(network), may_have_quota(info))
        self.id = made["Id"]
        self.warnings = tuple(made.get("Warnings") or ())

    async def _created(self, description: dict[str, Any], quota: bool) -> dict[str, Any]:
        if quota:
            size = {"StorageOpt": {"size": f"{self.plan.storage_mb}M"}}
            limited = {**description, "HostConfig": {**description["HostConfig"], **size}}
            try:
                return dict(await self._engine.post("/containers/create", limited, name=self.name))
            except EngineRefused:  # its file system was mounted without; if it was something else, it is refused again
                pass
        return dict(await self._engine.post("/containers/create", description, name=self.name))

    async def start(self, open_dirs: Sequence[str]) -> None:
        """Starts it with directories that everybody may write to."""
        paths = sorted({path for path in open_dirs if PurePosixPath(path) != _LOGS})
        # A first process of the task's own finds them; ours does nothing but wait.
        later = self._mounts is not None and not self._has_own_process
        if not later:
            await self._make_dirs(paths)
        await self._engine.post(f"/containers/{self.name}/start")
        found = await self._engine.get(f"/containers/{self.name}/json")
        if not found["State"]["Running"]:
            raise SandboxFault(f"The image's first process ended at once, with status {found['State']['ExitCode']}.")
        self.pid = int(found["State"]["Pid"])
        self.applied = found["HostConfig"]
        if self._mounts is not None:
            self.local = LocalContainer.found(self._mounts, self.id, self.pid)
        if self.local is not None:
            self.layers = Layers.found(found)
            self.forbids_devices = not self.applied.get("Privileged") and await self.local.forbid_devices()
        if later and self.local is not None:
            await self.local.view.start(Transfer.make_dirs, paths, 0o777)
        elif later:
            await self._make_dirs(paths)
        self.started = True

    @property
    def has_quota(self) -> bool:
        """Whether the engine itself limits what it may fill."""
        return bool((self.applied.get("StorageOpt") or {}).get("size"))

    @property
    def _has_own_process(self) -> bool:
        service, image = self.plan.service, self.plan.image.config
        return bool(service.command or service.entrypoint or (service.entrypoint is None and image.entrypoint))

    async def memory_kills(self) -> int:
        """Processes that the memory limit killed; 0 if it cannot be read any more."""
        if self.local is not None and (kills := self.local.memory_kills) is not None:
            return kills
        try:
            async with asyncio.timeout(_KILLS_SEC):
                ended = await EngineCommands(self._engine, self.name).run(Order(["sh", "-c", _KILLS], user="0"))
        except (SandboxFault, TimeoutError):
            return 0
        return memory_kills(ended.stdout)

    async def remove(self) -> None:
        self.started = False
        if self.local is not None:
            local, self.local = self.local, None
            local.close()
        await self._engine.remove_container(self.name)

    async def _make_dirs(self, paths: Sequence[str]) -> None:
        """Through the engine, which can do it before the container runs."""
        names = [str(PurePosixPath(path)).lstrip("/") for path in paths]
        if not names:
            return
        async with self._engine.stream(
            "PUT", f"/containers/{self.name}/archive", data=_directories(names), query={"path": "/"}
        ) as answer:
            await answer.read()

    def _description(self, network: Mapping[str, Any]) -> dict[str, Any]:
        plan, service = self.plan, self.plan.service
        described: dict[str, Any] = {
            "Image": plan.image.digest,
            "Cmd": list(service.command or _STAY),
            "Entrypoint": list(service.entrypoint) if service.entrypoint is not None else None,
            "Env": [f"{name}={value}" for name, value in plan.env.items()],
            "Labels": self.labels,
            "Hostname": service.hostname or plan.name,
            "WorkingDir": plan.workdir,
            "User": service.user,
            "Volumes": {"/tests": {}, str(_LOGS): {}} if plan.guards_tests else None,
        }
        held = {
            **self.limits,
            "Init": self._has_own_process,
            "IpcMode": "shareable",
            "LogConfig": {"Type": "none"},
            "Tmpfs": dict(entry.partition(":")[::2] for entry in service.tmpfs),
            "ExtraHosts": list(service.extra_hosts),
            **({"ShmSize": service.shm_mb << 20} if service.shm_mb else {}),
            **network,
            **({"Dns": list(plan.asked.servers)} if plan.asked.servers else {}),
        }
        confined = {
            "CapDrop": ["ALL"],
            "CapAdd": _CAPABILITIES,
            "SecurityOpt": ["no-new-privileges", *self.profiles.agent([f"CAP_{name}" for name in _CAPABILITIES])],
        }
        rights = {"Privileged": True} if service.privileged else confined
        given = {name: value for name, value in described.items() if value is not None}
        return {**given, "HostConfig": {**held, **rights}}


async def _directories(names: Sequence[str]) -> AsyncIterator[bytes]:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.type, member.mode = tarfile.DIRTYPE, 0o777
            tar.addfile(member)
    yield buffer.getvalue()
