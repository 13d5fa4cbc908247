"""The sandboxes that the suite runs against, behind one small face.

``conftest.py`` parametrises over ``KINDS``. Adding a sandbox means adding a class here.
"""

from __future__ import annotations

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment
from harbor.models.task.config import EnvironmentConfig, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from seatrial.sandboxes.options import SandboxOptions
from tests.engine import Engine

DOCKERFILE = """FROM debian:bookworm-slim
RUN useradd --create-home --uid 1234 --shell /bin/bash agent
ENV FROM_IMAGE="of the image" OVERRIDDEN=image
WORKDIR /app
"""


@dataclass(frozen=True)
class Wish:
    """What one test wants of its sandbox."""

    cpus: int | None = 1
    memory_mb: int | None = 512
    env: dict[str, str] = field(default_factory=dict)
    persistent_env: dict[str, str] = field(default_factory=dict)
    workdir: str | None = None
    network: NetworkPolicy | None = None
    phases: Sequence[NetworkPolicy] = ()
    options: dict[str, Any] = field(default_factory=dict)
    dockerfile: str = DOCKERFILE
    docker_image: str | None = None


@dataclass(frozen=True)
class Place:
    """Where the suite keeps its things."""

    directory: Path
    cache: Path
    engine: Engine | None = None
    stock_image: str | None = None
    install: str = field(default_factory=lambda: f"suite{uuid.uuid4().hex[:8]}")


class Kind(ABC):
    """One sandbox, as the suite sees it."""

    name: str
    needs_engine: bool = False
    ours: bool = True

    @abstractmethod
    def create(self, place: Place, wish: Wish) -> BaseEnvironment:
        """A sandbox that has not been started."""

    @abstractmethod
    async def traces(self, place: Place) -> list[str]:
        """What still exists on this machine of the sandboxes of ``place.install``."""

    @abstractmethod
    async def sweep(self, place: Place) -> None:
        """Removes what dead owners left, as a worker does when it starts."""

    async def end(self, sandbox: BaseEnvironment) -> None:
        await sandbox.stop(delete=True)

    def arguments(self, place: Place, wish: Wish) -> dict[str, Any]:
        """Harbor's constructor arguments."""
        directory = place.directory / uuid.uuid4().hex[:8]
        environment = directory / "environment"
        environment.mkdir(parents=True)
        if wish.dockerfile:
            (environment / "Dockerfile").write_text(wish.dockerfile)
        paths = TrialPaths(trial_dir=directory / "trial")
        paths.mkdir()
        return {
            "environment_dir": environment,
            "environment_name": "suite",
            "session_id": f"suite-{uuid.uuid4().hex[:8]}__env",
            "trial_paths": paths,
            "task_env_config": EnvironmentConfig(
                cpus=wish.cpus,
                memory_mb=wish.memory_mb,
                env=wish.env,
                workdir=wish.workdir,
                docker_image=wish.docker_image,
            ),
            "persistent_env": wish.persistent_env,
            "network_policy": wish.network,
            "phase_network_policies": list(wish.phases),
        }

    def own_arguments(self, place: Place, wish: Wish) -> dict[str, Any]:
        """The two that our sandboxes take in addition."""
        options = SandboxOptions(cache=place.cache, docker_host=place.engine.host if place.engine else "")
        return {
            "options": {**options.model_dump(mode="json"), **wish.options},
            "owner": {"install": place.install, "trial": 7, "try_number": 1},
        }


class Oci(Kind):
    name = "oci"

    def create(self, place: Place, wish: Wish) -> BaseEnvironment:
        from seatrial.sandboxes.oci.environment import OciEnvironment

        return OciEnvironment(**self.arguments(place, wish), **self.own_arguments(place, wish))

    async def traces(self, place: Place) -> list[str]:
        from seatrial.sandboxes.oci.leftovers import Leftovers

        records = Leftovers(place.cache / "run").sandboxes()
        return [record.sandbox for record in records if record.owner.install == place.install]

    async def sweep(self, place: Place) -> None:
        from seatrial.sandboxes.oci.leftovers import Leftovers

        await asyncio.to_thread(Leftovers(place.cache / "run").remove)


class Gvisor(Oci):
    name = "oci:runsc"

    def own_arguments(self, place: Place, wish: Wish) -> dict[str, Any]:
        return super().own_arguments(place, replace(wish, options={"oci_runtime": "runsc", **wish.options}))


class Docker(Kind):
    name = "docker"
    needs_engine = True

    def create(self, place: Place, wish: Wish) -> BaseEnvironment:
        from seatrial.sandboxes.docker.environment import DockerEnvironment

        return DockerEnvironment(**self.arguments(place, wish), **self.own_arguments(place, wish))

    async def traces(self, place: Place) -> list[str]:
        from seatrial.sandboxes.docker.leftovers import Leftovers

        assert place.engine is not None
        async with Leftovers.at(place.engine.host) as leftovers:
            return [found.name for found in await leftovers.containers() if found.record.owner.install == place.install]

    async def sweep(self, place: Place) -> None:
        from seatrial.sandboxes.docker.leftovers import Leftovers

        assert place.engine is not None
        async with Leftovers.at(place.engine.host) as leftovers:
            await leftovers.sweep()


class StockDocker(Kind):
    name = "harbor:docker"
    needs_engine = True
    ours = False

    def create(self, place: Place, wish: Wish) -> BaseEnvironment:
        from harbor.environments.docker.docker import DockerEnvironment

        arguments = self.arguments(place, wish)
        # Stock Harbor builds with compose; the suite is about running, so it gets the image that ours built.
        arguments["task_env_config"].docker_image = place.stock_image
        (arguments["environment_dir"] / "Dockerfile").unlink(missing_ok=True)
        arguments["phase_network_policies"] = arguments["phase_network_policies"] or ()
        return DockerEnvironment(**arguments)

    async def end(self, sandbox: BaseEnvironment) -> None:
        """Its first process ignores the request to end, and ten seconds a sandbox would be most of the suite's time."""
        project = f"label=com.docker.compose.project={sandbox.session_id}"
        script = f"docker ps --quiet --filter {project} | xargs --no-run-if-empty docker kill"
        await (await asyncio.create_subprocess_shell(script, stdout=asyncio.subprocess.DEVNULL)).wait()
        await super().end(sandbox)

    async def traces(self, place: Place) -> list[str]:
        raise NotImplementedError("stock sandboxes have no owner")

    async def sweep(self, place: Place) -> None:
        raise NotImplementedError("stock sandboxes have no owner")


KINDS: dict[str, Kind] = {kind.name: kind for kind in (Oci(), Gvisor(), Docker(), StockDocker())}
