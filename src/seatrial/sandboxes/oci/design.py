"""What a task, its compose service, its image and the operator together make of one daemonless sandbox. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from seatrial.sandboxes.compose import ComposeService
from seatrial.sandboxes.definition import Definition
from seatrial.sandboxes.images.image import Image
from seatrial.sandboxes.network.names import Asked
from seatrial.sandboxes.network.network import SandboxNetwork
from seatrial.sandboxes.oci.cgroups import Limits
from seatrial.sandboxes.oci.memory_dirs import MemoryDir
from seatrial.sandboxes.oci.pod_plan import PodPlan
from seatrial.sandboxes.options import Owner, SandboxOptions

_STAY = ("sh", "-c", "sleep infinity")
_STAYING = re.compile(r"((/bin/)?(ba)?sh -c )?(exec )?(sleep infinity|tail -f /dev/null)")


@dataclass(frozen=True, slots=True)
class SandboxDesign:
    """The parts that a plan is made of."""

    definition: Definition
    options: SandboxOptions
    owner: Owner

    @property
    def service(self) -> ComposeService:
        return self.definition.service

    def plan(self, sandbox: str, image: Image, network: SandboxNetwork, open_dirs: list[str], asked: Asked) -> PodPlan:
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
            not_applied=(*asked.not_applied, *(f"tmpfs {option}" for each in memory_dirs for option in each.unheard)),
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

    def user(self, image: Image) -> str:
        return self.service.user or image.config.user

    def first_command(self, image: Image) -> list[str]:
        """What the image or the compose file starts; nothing where that would only wait."""
        entrypoint = image.config.entrypoint if self.service.entrypoint is None else self.service.entrypoint
        command = self.service.command or _STAY
        waits = not entrypoint and _STAYING.fullmatch(" ".join(command))
        return [] if waits else [*entrypoint, *command]

    def _extra_hosts(self) -> list[str]:
        pairs = (line.partition(":") for line in self.service.extra_hosts)
        return [f"{address}\t{host}" for host, _, address in pairs]
