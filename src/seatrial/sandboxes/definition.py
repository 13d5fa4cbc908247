"""What a task's directory defines about its sandbox: the one service, its image, its user and its network.

``Sandbox`` reads it when Harbor makes the environment, ``rollouts`` where it only needs the image.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy

from seatrial.errors import Unsupported
from seatrial.sandboxes.compose import ComposeService, read_compose
from seatrial.sandboxes.images.image import Image, ImageRequest
from seatrial.sandboxes.network.reach import DefaultNetwork, default_network
from seatrial.sandboxes.options import SandboxOptions

_DEFAULT_STORAGE_MB = 10240
_PLAIN = ComposeService(name="main")


@dataclass(frozen=True, slots=True)
class Definition:
    """A task's environment, read and found to be one container."""

    task_name: str
    environment_dir: Path
    task: EnvironmentConfig
    service: ComposeService

    @classmethod
    def read(
        cls, task_name: str, environment_dir: Path, task: EnvironmentConfig, options: SandboxOptions
    ) -> Definition:
        """``Unsupported`` for a task of several containers."""
        return cls(task_name, environment_dir, task, _read_service(environment_dir, task.docker_image, options))

    def image_request(self, *, force_build: bool) -> ImageRequest:
        """The image that the task names, or its service, or else the one that its Dockerfile builds."""
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

    @property
    def own_workdir(self) -> str | None:
        """Where commands start, if the task says so itself."""
        return self.task.workdir or self.service.workdir

    def workdir(self, image: Image) -> str:
        return self.own_workdir or image.config.workdir or "/"

    def user(self, image: Image) -> str:
        """The user of commands that name none."""
        return self.service.user or image.config.user

    def network(self, policy: NetworkPolicy, options: SandboxOptions) -> NetworkPolicy | None:
        """The task's own policy, or the operator's default if the task declares none. ``None`` is the machine's own
        network."""
        declared = {"network_mode", "allowed_hosts"} & self.task.model_fields_set
        if declared or policy != NetworkPolicy():
            return policy
        default = default_network(options)
        if default is DefaultNetwork.NONE or self.service.network_mode == "none":
            return NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
        return None if default is DefaultNetwork.HOST else policy

    @property
    def storage_mb(self) -> int:
        return self.task.storage_mb or _DEFAULT_STORAGE_MB

    def pids(self, options: SandboxOptions) -> int:
        """A task may ask for fewer processes than the operator allows, never for more."""
        return min(self.service.pids or options.default_pids, options.default_pids)


def _read_service(environment_dir: Path, docker_image: str | None, options: SandboxOptions) -> ComposeService:
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
