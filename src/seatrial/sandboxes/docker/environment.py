"""The sandbox of a container engine as a Harbor environment: one container, spoken to over the engine's API.

The runner uses it through Harbor's ``Trial``; so does the stock CLI: ``harbor run … -e
seatrial.sandboxes.docker:DockerEnvironment``. This file translates Harbor's calls; a ``SandboxContainer`` is the
sandbox itself. ``container`` describes and holds the container, ``sidecar`` ends commands and grades,
``network`` connects and ``storage`` holds it to its limit.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, override

from harbor.environments.base import ExecResult
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.errors import SandboxFault, Unsupported
from seatrial.growing_files import FileView
from seatrial.sandboxes.check import Finding
from seatrial.sandboxes.docker import probe as docker_check
from seatrial.sandboxes.docker.client import EngineClient
from seatrial.sandboxes.docker.command import Listener
from seatrial.sandboxes.docker.container import ContainerPlan
from seatrial.sandboxes.docker.facts import facts_of
from seatrial.sandboxes.docker.images import shared_engine_images
from seatrial.sandboxes.docker.local_view import LocalView, runs_here
from seatrial.sandboxes.docker.network import DockerNetworks, EngineNetwork, can_route
from seatrial.sandboxes.docker.sandbox_container import Call, SandboxContainer
from seatrial.sandboxes.host.transfer import LeftOut
from seatrial.sandboxes.images.image import Image, ImageProvider
from seatrial.sandboxes.network.names import Asked
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.record import SandboxRecord
from seatrial.sandboxes.sandbox import Sandbox, SandboxFacts


async def probe(options: SandboxOptions) -> list[Finding]:
    """What of this sandbox works here, for ``doctor`` and for ``--sandbox auto``."""
    return await docker_check.probe(options)


class DockerEnvironment(Sandbox):
    """A sandbox in a container engine."""

    def __init__(
        self,
        *args: Any,
        images: ImageProvider | None = None,
        is_local: Callable[[str], bool] = runs_here,
        **kwargs: Any,
    ) -> None:
        """``is_local`` says of an engine's address whether its containers run here and may be entered."""
        self._given_images = images
        self._is_local = is_local
        self._container: SandboxContainer | None = None
        self._starting: asyncio.Future[None] | None = None
        self._network: EngineNetwork | None = None
        super().__init__(*args, **kwargs)
        self._engine = EngineClient(self.options.docker_host)

    @staticmethod
    @override
    def type() -> str:
        return "docker"

    @classmethod
    @override
    def preflight(cls) -> None:
        docker_check.require()

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
    def facts(self) -> SandboxFacts:
        return facts_of(self._image, self._container)

    @property
    @override
    def network_namespace(self) -> Path | None:
        return self._network.namespace if self._network is not None else None

    @override
    async def start(self, force_build: bool) -> None:
        images = self._given_images or shared_engine_images(self.options).resolver
        image = await self._bring_image(images, force_build)
        name = f"seatrial-{uuid.uuid4().hex[:12]}"
        room = DockerNetworks(self._engine, self.options, self.owner.install, routed=self._routed)
        self._network = room.network(name, self._wanted_network())
        mounts = Machine.shared(self.options.cache).mounts if self._enters else None
        self._container = container = SandboxContainer(self._engine, self._plan(name, image), self._network, mounts)
        open_dirs = [*self._mount_targets(writable_only=True), *self._definition.service.directories]
        self._starting = asyncio.ensure_future(container.start(open_dirs, self.options.cache / "seccomp"))
        await asyncio.shield(self._starting)
        await self._upload_environment_dir_after_start()

    @override
    async def stop(self, delete: bool) -> None:
        """Removes everything, whatever Harbor says: nothing could be done with what stayed."""
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
        try:
            if self._container is not None:
                await self._container.remove()
        finally:
            if self._network is not None:
                await self._network.release()
            await self._engine.close()
            self._held.close()

    @override
    async def _allow(self, script: str, user: str | int | None) -> bool:
        view = self._view_of_root(user)
        return view is not None and await view.make_executable(script)

    @override
    async def _run(
        self,
        command: str,
        cwd: str | None,
        env: dict[str, str] | None,
        timeout_sec: int | None,
        user: str | int | None,
    ) -> ExecResult:
        container = self._running()
        if container.storage is not None:
            await container.storage.settled()
        wanted = self._resolve_user(user)
        call = Call(
            command=command,
            env=self._merge_env(env) or {},
            cwd=cwd or self.task_env_config.workdir,
            user="" if wanted is None else str(wanted),
            mark=uuid.uuid4().hex,
        )
        try:
            async with asyncio.timeout(timeout_sec or None):
                ended = await container.run(call, self._listener())
        except (TimeoutError, asyncio.CancelledError) as interruption:
            await asyncio.shield(container.end(call.mark))
            if isinstance(interruption, TimeoutError):
                raise RuntimeError(f"Command timed out after {timeout_sec} seconds") from None
            raise
        except SandboxFault:
            container.running()  # says why, if it was us who removed the sandbox
            raise
        judged = await container.judged(ended)
        return ExecResult(stdout=judged.stdout, stderr=judged.stderr, return_code=judged.return_code)

    @override
    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        view = self._view_of_root(user)
        return await view.is_dir(self._absolute(path)) if view is not None else bool(await super().is_dir(path, user))

    @override
    async def is_file(self, path: str, user: str | int | None = None) -> bool:
        view = self._view_of_root(user)
        return await view.is_file(self._absolute(path)) if view is not None else bool(await super().is_file(path, user))

    @override
    async def put_file(self, source_path: Path, target_path: str) -> None:
        await self._running().files.put_file(source_path, target_path)

    @override
    async def put_dir(self, source_dir: Path, target_dir: str) -> None:
        await self._running().files.put_tree(source_dir, target_dir)

    @override
    async def get_file(self, source_path: str, target_path: Path) -> None:
        await self._running().files.get_file(source_path, target_path, self.transfer_limits)

    @override
    async def get_dir(self, source_dir: str, target_dir: Path, first: Sequence[str]) -> LeftOut:
        return await self._running().files.get_tree(source_dir, target_dir, self.transfer_limits, first)

    @override
    async def look_again(self) -> None:
        await self._running().look_again()

    @override
    async def begin_grading(self) -> None:
        await self._running().begin_grading()

    @override
    async def end_grading(self) -> None:
        await self._running().end_grading()

    @override
    async def _look(
        self, folders: Mapping[str, str], seen: Mapping[str, int], wanted: Callable[[str], bool]
    ) -> Sequence[FileView] | None:
        view = self._running().view
        return await view.look(folders, seen, wanted) if view is not None else None

    @override
    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        if self._network is not None:
            await self._network.apply(network_policy)

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
            asked=Asked.of(service.dns, self._network_policy),
            storage_mb=self._definition.storage_mb,
            workdir=self._definition.own_workdir,
            # A dedicated verifier's image owns its tests, and no agent is in it who could do anything to them.
            guards_tests=self._enable_environment_dir_upload,
        )

    @override
    def _absolute(self, path: str) -> str:
        workdir = self.task_env_config.workdir or self._running().running().settings.workdir
        return str(Path("/", workdir, path)) + "/" * path.endswith("/")

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

    def _view_of_root(self, user: str | int | None) -> LocalView | None:
        """The current view if this user may do everything: what a command of theirs would do can be done without it."""
        container, wanted = self._running(), self._resolve_user(user)
        name = container.running().settings.user if wanted is None else str(wanted)
        return container.view if name in ("", "root", "0") else None

    def _listener(self) -> Listener | None:
        callback = self._output_callback()
        if callback is None:
            return None
        return lambda text, error: callback(text, "stderr" if error else "stdout")
