"""The container of one docker sandbox: how it is described to the engine, and what the engine made of it.

``sandbox_container`` holds one. In the container the agent has what Docker gives by default, without AUDIT_WRITE: that
one is the verifier's seal (see ``sidecar``). ``/tests`` and ``/logs`` are volumes of the container's own, because a
directory that is a mount point can be neither removed nor renamed by what runs there.
"""

from __future__ import annotations

import asyncio
import io
import re
import tarfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from seatrial.errors import SandboxFault
from seatrial.sandboxes.compose import ComposeService
from seatrial.sandboxes.docker.client import EngineClient, EngineRefused
from seatrial.sandboxes.docker.command import EngineCommands, Order
from seatrial.sandboxes.docker.layers import Layers
from seatrial.sandboxes.docker.local_view import Residence
from seatrial.sandboxes.docker.seccomp import Profiles
from seatrial.sandboxes.docker.sidecar import remove_container
from seatrial.sandboxes.docker.sidecar_scripts import SEAL, SLEEP
from seatrial.sandboxes.host.private_mounts import PrivateMounts
from seatrial.sandboxes.images.image import Image
from seatrial.sandboxes.network.names import Asked
from seatrial.sandboxes.oci.container_spec import DOCKER_CAPABILITIES
from seatrial.sandboxes.record import SandboxRecord

LABEL_RECORD = "seatrial.record"
_LOGS = PurePosixPath("/logs")
_CAPABILITIES = [name.removeprefix("CAP_") for name in DOCKER_CAPABILITIES if name != f"CAP_{SEAL}"]
# The first process ignores every signal that the sandbox can send. It starts its sleep again when somebody kills it.
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
    """Whether to ask the engine for a limit of storage: its driver can, if its file system was set up for it."""
    driver, backing = info.get("Driver"), dict(info.get("DriverStatus") or ()).get("Backing Filesystem")
    return driver in ("btrfs", "zfs") or (driver in ("overlay", "overlay2") and backing == "xfs")


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """What a sandbox's container shall be."""

    name: str
    image: Image
    record: SandboxRecord
    env: Mapping[str, str]
    cpus: float
    memory_mb: int
    pids: int
    storage_mb: int
    service: ComposeService
    """What the task's compose file says about it."""
    asked: Asked = Asked()  # noqa: RUF009
    workdir: str | None = None
    guards_tests: bool = True


@dataclass(frozen=True, slots=True)
class Settings:
    """What commands get from the container."""

    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = ""


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
        self.settings = Settings()
        self.id = ""
        self.pid = 0
        """Of its first process, as the engine's machine counts."""
        self.applied: Mapping[str, Any] = {}
        """The engine's own account of the container's confinement."""
        self.warnings: tuple[str, ...] = ()
        self.profiles = Profiles({}, None)
        self.residence: Residence | None = None
        """While it runs, where it can be entered."""
        self.forbids_devices = False
        """Whether its root is mounted such that device nodes there cannot be opened."""
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
        """``network`` adds to the host configuration; ``info`` is what the engine says about itself."""
        self.profiles = profiles
        made = await self._created(self._description(network), may_have_quota(info))
        self.id = made["Id"]
        self.warnings = tuple(made.get("Warnings") or ())

    async def _created(self, description: dict[str, Any], quota: bool) -> dict[str, Any]:
        if quota:
            size = {"StorageOpt": {"size": f"{self.plan.storage_mb}M"}}
            limited = {**description, "HostConfig": {**description["HostConfig"], **size}}
            try:
                return await self._post(limited)
            except EngineRefused:  # its file system was mounted without; if it was something else, it is refused again
                pass
        return await self._post(description)

    async def _post(self, description: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = await self._engine.post("/containers/create", description, name=self.name)
        return made

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
        config = found["Config"]
        self.settings = Settings(
            # Not as the engine tells it: Podman adds root's HOME, which is no other user's.
            env={**self.plan.image.config.env, **self.plan.env},
            workdir=config.get("WorkingDir") or "/",
            user=config.get("User") or "",
        )
        self.pid = int(found["State"]["Pid"])
        self.applied = found["HostConfig"]
        if self._mounts is not None:
            self.residence = Residence.found(self._mounts, self.id, self.pid)
        if self.residence is not None:
            self.layers = Layers.found(found)
            self.forbids_devices = not self.applied.get("Privileged") and await self.residence.view.forbid_devices()
        if later and self.residence is not None:
            await self.residence.view.make_dirs(paths, 0o777)
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
        """Processes that were killed for want of memory, as far as the container still says."""
        if self.residence is not None and (kills := self.residence.memory_kills) is not None:
            return kills
        try:
            async with asyncio.timeout(_KILLS_SEC):
                ended = await EngineCommands(self._engine, self.name).run(Order(["sh", "-c", _KILLS], user="0"))
        except (SandboxFault, TimeoutError):
            return 0
        return sum(int(number) for number in re.findall(r"^oom_kill (\d+)$", ended.stdout, re.MULTILINE))

    async def remove(self) -> None:
        self.started = False
        if self.residence is not None:
            residence, self.residence = self.residence, None
            residence.close()
        await remove_container(self._engine, self.name)

    async def _make_dirs(self, paths: Sequence[str]) -> None:
        """Through the engine, which can do it while nothing runs in it yet."""
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
