"""The sandbox of a container engine as a Harbor environment: one container, spoken to over the engine's API.

The runner uses it through Harbor's ``Trial``; so does the stock CLI: ``harbor run … -e
seatrial.sandboxes.docker:DockerEnvironment``. This file translates Harbor's calls; a ``SandboxContainer`` is the
sandbox itself. ``container`` describes and holds the container, ``sidecar`` ends commands and grades,
``network`` connects and ``storage`` holds it to its limit.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, override

from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.errors import SandboxFault, Unsupported
from seatrial.sandboxes.call import Call
from seatrial.sandboxes.docker.client import EngineClient, EngineRefused
from seatrial.sandboxes.docker.container import ContainerPlan
from seatrial.sandboxes.docker.facts import facts_of
from seatrial.sandboxes.docker.images import shared_engine_images
from seatrial.sandboxes.docker.local_container import runs_here
from seatrial.sandboxes.docker.network import EngineNetwork, can_route, choose_network
from seatrial.sandboxes.docker.probe import require
from seatrial.sandboxes.docker.sandbox_container import SandboxContainer
from seatrial.sandboxes.facts import SandboxFacts
from seatrial.sandboxes.host.notice_board import NoticeBoards
from seatrial.sandboxes.host.tools import HostTools
from seatrial.sandboxes.host.view import Files
from seatrial.sandboxes.images.image import Image, ImageProvider
from seatrial.sandboxes.kept_state import SavedLayer
from seatrial.sandboxes.network.names import TaskNameServers
from seatrial.sandboxes.output import Ended
from seatrial.sandboxes.record import SandboxRecord
from seatrial.sandboxes.sandbox import Sandbox


class DockerEnvironment(Sandbox):
    """A sandbox in a container engine."""

    _network: EngineNetwork | None

    def __init__(self, *args: Any, is_local: Callable[[str], bool] = runs_here, **kwargs: Any) -> None:
        """``is_local`` decides by an engine's address whether its containers run here and may be entered."""
        self._is_local = is_local
        self._container: SandboxContainer | None = None
        super().__init__(*args, **kwargs)
        self._engine = EngineClient(self.options.docker_host)

    @staticmethod
    @override
    def type() -> str:
        return "docker"

    @classmethod
    @override
    def preflight(cls) -> None:
        require()

    @override
    def validate_network_policy_support(self, network_policy: NetworkPolicy | None = None) -> None:
        super().validate_network_policy_support(network_policy)
        policy = network_policy or self._network_policy
        if policy.network_mode is NetworkMode.ALLOWLIST and not self._routed:
            raise Unsupported(
                "An allowlist of hosts cannot be enforced through the container engine alone.",
                field="network_mode",
                fix="Run as root on the engine's own machine, or use the oci sandbox.",
            )

    @property
    @override
    def _applied(self) -> SandboxFacts:
        return facts_of(self._container)

    @override
    def _shared_images(self) -> ImageProvider:
        return shared_engine_images(self.options).resolver

    @override
    async def _start(self, image: Image) -> None:
        name = f"seatrial-{uuid.uuid4().hex[:12]}"
        policy = self._wanted_network()
        self._network = choose_network(self._engine, self.options, self.owner, name, policy, routed=self._routed)
        mounts = HostTools.shared(self.options.cache).mounts if self._enters else None
        self._container = container = SandboxContainer(self._engine, self._plan(name, image), self._network, mounts)
        open_dirs = [*self._mount_targets(writable_only=True), *self._definition.service.directories]
        await self._finish_even_if_cancelled(container.start(open_dirs, self.options.cache / "seccomp"))

    @override
    async def _remove(self) -> None:
        if self._container is not None:
            await self._container.remove()

    @override
    async def stop(self, delete: bool) -> None:
        try:
            await super().stop(delete)
        finally:
            await self._engine.close()

    @override
    async def _run(self, call: Call, timeout_sec: int | None) -> Ended:
        container = self._running()
        if container.storage is not None:
            await container.storage.settled()
        call = replace(call, cwd=call.cwd or self.task_env_config.workdir)
        try:
            async with asyncio.timeout(timeout_sec or None):
                ended = await container.run(call, self._output_callback())
        except (TimeoutError, asyncio.CancelledError):
            await asyncio.shield(container.end(call.mark))
            raise
        except SandboxFault:
            container.running()  # raises with the reason if the storage limit removed the sandbox
            raise
        return await container.judged(ended)

    @property
    @override
    def files(self) -> Files:
        return self._running().files

    @property
    @override
    def can_save_layers(self) -> bool:
        return True

    @property
    @override
    def notices(self) -> NoticeBoards | None:
        return HostTools.shared(self.options.cache).notices if self._enters else None

    @override
    async def save_layer(self, target: Path, below: Image) -> SavedLayer:
        name = await self._running().commit()
        whole, part = [await self._engine.get(f"/images/{image}/json") for image in (name, below.digest)]
        return SavedLayer(name, max(0, int(whole["Size"]) - int(part["Size"])))

    @override
    async def with_layer(self, image: Image, name: str) -> Image | None:
        try:
            await self._engine.get(f"/images/{name}/json")
        except EngineRefused:
            return None
        return image.model_copy(update={"digest": name, "below": image.digest})

    @override
    async def lend(self, directory: Path, place: str) -> bool:
        return await self._running().lend(directory, place)

    @override
    async def look_again(self) -> None:
        await self._running().look_again()

    @override
    async def begin_grading(self) -> None:
        await self._running().begin_grading()
        self.grading = True

    @override
    async def end_grading(self) -> None:
        await self._running().end_grading()
        self.grading = False

    def _plan(self, name: str, image: Image) -> ContainerPlan:
        service = self._definition.service
        return ContainerPlan(
            name=name,
            image=image,
            record=SandboxRecord.new(name, self.owner),
            service=service,
            env={**service.env, **self._startup_env()},
            cpus=self._effective_cpus or service.cpus or self.options.default_cpus,
            memory_mb=self._effective_memory_mb or service.memory_mb or self.options.default_memory_mb,
            pids=self._definition.pids(self.options),
            asked=TaskNameServers.of(service.dns, self._network_policy),
            storage_mb=self._definition.storage_mb,
            workdir=self._definition.own_workdir,
            # The image of a separate verifier brings its tests, and no agent runs there.
            guards_tests=self._enable_environment_dir_upload,
        )

    def _running(self) -> SandboxContainer:
        if self._container is None:
            raise SandboxFault("The sandbox has not been started.")
        return self._container

    @cached_property
    def _enters(self) -> bool:
        return self._is_local(self.options.docker_host)

    @property
    def _routed(self) -> bool:
        return can_route() and self._enters
