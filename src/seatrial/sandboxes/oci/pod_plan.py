"""Plans one daemonless sandbox from its task, its compose service, its image and the operator's options. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from seatrial.sandboxes.compose import ComposeService
from seatrial.sandboxes.definition import Definition
from seatrial.sandboxes.host.cgroups import Limits
from seatrial.sandboxes.images.image import Image
from seatrial.sandboxes.network.names import TaskNameServers
from seatrial.sandboxes.network.network import SandboxNetwork
from seatrial.sandboxes.options import Owner, SandboxOptions

_STAY = ("sh", "-c", "sleep infinity")
_STAYING = re.compile(r"((/bin/)?(ba)?sh -c )?(exec )?(sleep infinity|tail -f /dev/null)")
_PASSED_ON = ("size", "mode", "uid", "gid", "nr_inodes", "nr_blocks")
_ALWAYS_APPLIED = ("rw", "nosuid", "nodev", "noexec", "exec")


@dataclass(frozen=True, slots=True)
class MemoryDir:
    """An entry of ``tmpfs`` in a compose file: a directory in memory. Its content counts as the sandbox's memory.

    ``pod_directory`` mounts each once for both containers, so the verifier finds what the agent left there."""

    target: str
    options: tuple[str, ...] = ()
    executable: bool = False
    ignored: tuple[str, ...] = ()
    """Options that have no effect here."""

    @classmethod
    def read(cls, entry: str) -> MemoryDir:
        """``path`` or ``path:option,option``, as Docker reads it."""
        target, _, text = entry.partition(":")
        words = [word for word in text.split(",") if word]
        return cls(
            target=str(PurePosixPath("/", target)),
            options=tuple(word for word in words if word.partition("=")[0] in _PASSED_ON),
            executable="exec" in words,
            ignored=tuple(word for word in words if word.partition("=")[0] not in (*_PASSED_ON, *_ALWAYS_APPLIED)),
        )

    @property
    def flags(self) -> tuple[str, ...]:
        """As a container's mount has them."""
        return ("nosuid", "nodev") if self.executable else ("nosuid", "nodev", "noexec")


@dataclass(frozen=True, slots=True)
class PodPlan:
    """``pod`` and ``pod_directory`` carry it out."""

    sandbox: str
    owner: Owner
    image: Image
    limits: Limits
    hostname: str = "sandbox"
    hosts: str = "127.0.0.1\tlocalhost\n"
    resolv_conf: str = ""
    network: Path | None = None
    host_network: bool = False
    privileged: bool = False
    open_dirs: tuple[str, ...] = ()
    """Directories that every user may write to."""
    workdir: str | None = None
    shared_memory_mb: int = 64
    memory_dirs: tuple[MemoryDir, ...] = ()
    final_state: Path | None = None
    """A disk that another sandbox of this trial had when its agent ended. This one begins with it."""
    not_applied: tuple[str, ...] = ()
    """Requests of the task that are not fulfilled."""


@dataclass(frozen=True, slots=True)
class SandboxDesign:
    """What a plan is made from."""

    definition: Definition
    options: SandboxOptions
    owner: Owner

    @property
    def service(self) -> ComposeService:
        return self.definition.service

    def plan(
        self, sandbox: str, image: Image, network: SandboxNetwork, open_dirs: list[str], asked: TaskNameServers
    ) -> PodPlan:
        memory_dirs = tuple(MemoryDir.read(entry) for entry in self.service.tmpfs)
        return PodPlan(
            sandbox=sandbox,
            owner=self.owner,
            image=image,
            limits=self.limits,
            hostname=self.service.hostname or network.hostname,
            hosts=network.hosts + "".join(f"{line}\n" for line in self._extra_hosts()),
            resolv_conf=asked.resolv_conf(network.resolv_conf),
            network=network.netns_path,
            host_network=network.netns_path is None,
            privileged=self.service.privileged and self.options.allow_privileged,
            open_dirs=(*open_dirs, *self.service.directories, *(wanted.target for wanted in memory_dirs)),
            workdir=self.definition.workdir(image),
            shared_memory_mb=self.service.shm_mb or 64,
            memory_dirs=memory_dirs,
            not_applied=(*asked.not_applied, *(f"tmpfs {option}" for each in memory_dirs for option in each.ignored)),
        )

    @property
    def limits(self) -> Limits:
        task = self.definition.task
        return Limits(
            cpus=task.cpus or self.service.cpus or self.options.default_cpus,
            memory_mb=task.memory_mb or self.service.memory_mb or self.options.default_memory_mb,
            pids=self.definition.pids(self.options),
            storage_mb=self.definition.storage_mb,
        )

    def environment(self, image: Image) -> dict[str, str]:
        return {**image.config.env, **self.service.env}

    def first_command(self, image: Image) -> list[str]:
        """What the image or the compose file starts; nothing where that would only wait."""
        entrypoint = image.config.entrypoint if self.service.entrypoint is None else self.service.entrypoint
        command = self.service.command or _STAY
        waits = not entrypoint and _STAYING.fullmatch(" ".join(command))
        return [] if waits else [*entrypoint, *command]

    def _extra_hosts(self) -> list[str]:
        pairs = (line.partition(":") for line in self.service.extra_hosts)
        return [f"{address}\t{host}" for host, _, address in pairs]
