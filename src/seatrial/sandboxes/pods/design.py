"""What a task, its compose service, its image and the operator together make of one daemonless sandbox. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from harbor.models.task.config import EnvironmentConfig

from seatrial.errors import Unsupported
from seatrial.sandboxes.compose import ComposeService, read_compose
from seatrial.sandboxes.image import Image, ImageRequest
from seatrial.sandboxes.name_servers import Asked
from seatrial.sandboxes.networks.network import SandboxNetwork
from seatrial.sandboxes.options import Owner, SandboxOptions
from seatrial.sandboxes.pods.cgroups import Limits
from seatrial.sandboxes.pods.memory_dirs import MemoryDir
from seatrial.sandboxes.pods.pod import PodPlan

DEFAULT_STORAGE_MB = 10240
_PLAIN = ComposeService(name="main")
_STAY = ("sh", "-c", "sleep infinity")
_STAYING = re.compile(r"((/bin/)?(ba)?sh -c )?(exec )?(sleep infinity|tail -f /dev/null)")


def read_service(environment_dir: Path, docker_image: str | None, options: SandboxOptions) -> ComposeService:
    """A Dockerfile, a ready image, or a compose file that is no more than one service."""
    compose = read_compose(environment_dir, allow_privileged=options.allow_privileged)
    if compose is not None and compose.single is None:
        raise Unsupported(
            f"This task has several services ({', '.join(compose.services)}); this sandbox is one container.",
            fix="Start a container engine and use --sandbox harbor:docker.",
        )
    service = compose.single if compose is not None and compose.single is not None else _PLAIN
    place = environment_dir / service.context / service.dockerfile
    if not docker_image and not service.image and not place.is_file():
        raise FileNotFoundError(f"{place} is missing, and the task names no image.")
    return service


@dataclass(frozen=True, slots=True)
class SandboxDesign:
    """The parts that a plan is made of."""

    environment_dir: Path
    task_name: str
    task: EnvironmentConfig
    service: ComposeService
    options: SandboxOptions
    owner: Owner

    def image_request(self, *, force_build: bool) -> ImageRequest:
        return ImageRequest(
            task_name=self.task_name,
            environment_dir=self.environment_dir / self.service.context,
            docker_image=self.task.docker_image or self.service.image,
            force_build=force_build,
            build_timeout_sec=self.task.build_timeout_sec,
            build_args=self.service.build_args,
            dockerfile=self.service.dockerfile,
            target=self.service.target,
        )

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
            workdir=self.workdir(image),
            shared_memory_mb=self.service.shm_mb or 64,
            memory_dirs=memory_dirs,
            not_applied=(*asked.not_applied, *(f"tmpfs {option}" for each in memory_dirs for option in each.unheard)),
        )

    @property
    def limits(self) -> Limits:
        return Limits(
            cpus=self.task.cpus or self.service.cpus or self.options.default_cpus,
            memory_mb=self.task.memory_mb or self.service.memory_mb or self.options.default_memory_mb,
            pids=min(self.service.pids or self.options.default_pids, self.options.default_pids),
            storage_mb=self.task.storage_mb or DEFAULT_STORAGE_MB,
        )

    def workdir(self, image: Image) -> str:
        return self.task.workdir or self.service.workdir or image.config.workdir or "/"

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
