"""The sandbox of a container engine as a Harbor environment: one container, spoken to over the engine's API.

The runner uses it through Harbor's ``Trial``; so does the stock CLI: ``harbor run … -e
seatrial.sandboxes.docker:DockerEnvironment``. This file translates Harbor's calls. In ``engine``,
``container`` describes and holds the container, ``warden`` ends commands and grades, ``network`` connects and
``storage`` holds it to its limit.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, override

from harbor.environments.base import ExecResult
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.errors import SandboxFault, Unsupported
from seatrial.glimpse import Glimpse
from seatrial.sandboxes.check import Finding
from seatrial.sandboxes.compose import ComposeService
from seatrial.sandboxes.engine import probe as docker_check
from seatrial.sandboxes.engine.accounts import find_account
from seatrial.sandboxes.engine.changes import find_losses
from seatrial.sandboxes.engine.changes import find_suspicions as find_in_engine
from seatrial.sandboxes.engine.client import EngineClient
from seatrial.sandboxes.engine.command import MARK, Ended, EngineCommands, Listener, Order
from seatrial.sandboxes.engine.container import Container, ContainerPlan
from seatrial.sandboxes.engine.facts import facts_of
from seatrial.sandboxes.engine.files import AgentFiles, Files, GradingFiles
from seatrial.sandboxes.engine.images import shared_engine_images
from seatrial.sandboxes.engine.local_view import LocalView, runs_here
from seatrial.sandboxes.engine.network import EngineNetwork, NetworkRoom, can_route
from seatrial.sandboxes.engine.seccomp import Profiles
from seatrial.sandboxes.engine.storage import EngineGauge, Gauge, LayersGauge, StorageLimit
from seatrial.sandboxes.engine.warden import Ward, Warden
from seatrial.sandboxes.image import Image, ImageProvider, ImageRequest
from seatrial.sandboxes.name_servers import Asked
from seatrial.sandboxes.networks.reach import DefaultNetwork
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.pods.container_spec import DEFAULT_PATH
from seatrial.sandboxes.pods.design import DEFAULT_STORAGE_MB, read_service
from seatrial.sandboxes.pods.layer_suspicion import find_suspicions as find_in_layers
from seatrial.sandboxes.pods.machine import Machine
from seatrial.sandboxes.record import SandboxRecord
from seatrial.sandboxes.sandbox import Sandbox, SandboxFacts

_KILLED = 137
_CANNOT_RUN = (126, 127)
_RUNTIME = ("OCI runtime exec failed", "unable to find user")
_NO_SHELL = ('exec: "bash"', "can't execute 'bash'", "container breakout")


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
        self._image: Image | None = None
        self._container: Container | None = None
        self._starting: asyncio.Future[None] | None = None
        self._network: EngineNetwork | None = None
        self._warden: Warden | None = None
        self._storage: StorageLimit | None = None
        self._memory_killed = False
        self._suspicions: tuple[str, ...] = ()
        self._service: ComposeService
        self._held = ExitStack()
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
    def _validate_definition(self) -> None:
        self._service = read_service(self.environment_dir, self.task_env_config.docker_image, self.options)

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
        return facts_of(
            self._image,
            self._container,
            self._network,
            self._storage,
            memory_killed=self._memory_killed,
            suspicions=self._suspicions,
        )

    @property
    @override
    def network_namespace(self) -> Path | None:
        return self._network.namespace if self._network is not None else None

    @override
    async def start(self, force_build: bool) -> None:
        await self._enter("build")
        images = self._given_images or shared_engine_images(self.options).resolver
        self._image = image = await images.resolve(self._image_request(force_build), self.on_build_output)
        await self._enter("start")
        self._held.enter_context(images.hold(image))
        name = f"seatrial-{uuid.uuid4().hex[:12]}"
        room = NetworkRoom(self._engine, self.options, self.owner.install, routed=self._routed)
        self._network = room.network(name, self._wanted_network())
        mounts = self._machine.mounts if self._enters else None
        self._container = Container(self._engine, self._plan(name, image), mounts)
        self._starting = asyncio.ensure_future(self._bring_up(self._container, self._network))
        await asyncio.shield(self._starting)
        await self._upload_environment_dir_after_start()

    @override
    async def stop(self, delete: bool) -> None:
        """Removes everything, whatever Harbor says: nothing could be done with what stayed."""
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
        try:
            if self._storage is not None:
                await self._storage.end()
            await self._note_memory_kill()
            removals = [part.remove() for part in (self._warden, self._container) if part is not None]
            for failure in await asyncio.gather(*removals, return_exceptions=True):
                if failure is not None:
                    raise failure
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
        if self._storage is not None:
            await self._storage.settled()
        mark = uuid.uuid4().hex
        wanted = self._resolve_user(user)
        identity = "" if wanted is None else str(wanted)
        running = self._started(command, cwd or self.task_env_config.workdir, env, identity, mark, self._listener())
        try:
            async with asyncio.timeout(timeout_sec or None):
                ended = await running
        except (TimeoutError, asyncio.CancelledError) as interruption:
            await asyncio.shield(self._end(mark))
            if isinstance(interruption, TimeoutError):
                raise RuntimeError(f"Command timed out after {timeout_sec} seconds") from None
            raise
        except SandboxFault:
            self._running()  # says why, if it was us who removed the sandbox
            raise
        return await self._judged(ended)

    @override
    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        view = self._view_of_root(user)
        return await view.is_dir(self._absolute(path)) if view is not None else bool(await super().is_dir(path, user))

    @override
    async def is_file(self, path: str, user: str | int | None = None) -> bool:
        view = self._view_of_root(user)
        return await view.is_file(self._absolute(path)) if view is not None else bool(await super().is_file(path, user))

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await self._files().put_file(Path(source_path), self._absolute(target_path))

    @override
    async def put_dir(self, source_dir: Path, target_dir: str) -> None:
        await self._files().put_tree(source_dir, self._absolute(target_dir))

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        await self._files().get_file(self._absolute(source_path), Path(target_path))

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        for line in await self._files().get_tree(self._absolute(source_dir), Path(target_dir)):
            self.logger.warning("Not downloaded from %s: %s", source_dir, line)

    @override
    async def begin_grading(self) -> None:
        self._suspicions = await self._find_suspicions(self._running())
        await self._the_warden().begin_grading()

    @override
    async def end_grading(self) -> None:
        await self._the_warden().remove()

    @override
    async def _look(
        self, folders: Mapping[str, str], seen: Mapping[str, int], wanted: Callable[[str], bool]
    ) -> Sequence[Glimpse] | None:
        view = self._view()
        return await view.look(folders, seen, wanted) if view is not None else None

    @override
    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        if self._network is not None:
            await self._network.apply(network_policy)

    async def _bring_up(self, container: Container, network: EngineNetwork) -> None:
        info, added = await asyncio.gather(self._engine.get("/info"), network.host_config())
        profiles = Profiles(info, self.options.cache / "seccomp" if self._enters else None)
        await container.create(added, info, profiles)
        await container.start([*self._mount_targets(writable_only=True), *self._service.directories])
        await network.connect(container)
        self._storage = StorageLimit(container, self._the_warden, self._gauge(container))
        self._storage.begin()

    async def _find_suspicions(self, container: Container) -> tuple[str, ...]:
        assert self._image is not None
        search_path = self._image.config.env.get("PATH", DEFAULT_PATH)
        if (layers := container.layers) is not None:
            mounts = self._machine.mounts
            return await mounts.carry(find_in_layers, mounts, layers.changes, layers.image, search_path)
        return await find_in_engine(self._engine, container, search_path)

    async def _started(
        self, command: str, cwd: str | None, env: dict[str, str] | None, user: str, mark: str, listener: Listener | None
    ) -> Ended:
        container, added = self._running(), self._merge_env(env) or {}
        if not self.grading:
            order = Order(["bash", "-c", command], {**added, MARK: mark}, cwd, user)
            return await EngineCommands(self._engine, container.name).run(order, listener)
        settings = container.settings
        view, wanted = self._view(), user or settings.user
        account = (
            await view.account(wanted) if view is not None else await find_account(self._engine, container.name, wanted)
        )
        dressed = {"HOME": account.home, **settings.env, **added}
        return await self._the_warden().run(command, dressed, cwd or settings.workdir, account, mark, listener)

    async def _end(self, mark: str) -> None:
        residence = self._running().residence
        if residence is not None:
            await self._machine.mounts.carry(residence.kill_command, f"{MARK}={mark}")
        else:
            await self._the_warden().kill(mark)

    async def _judged(self, ended: Ended) -> ExecResult:
        """A command that fails is a result; a sandbox in which none can run any more is a fault."""
        self._running()
        if ended.return_code == _KILLED:
            await self._note_memory_kill()
        if ended.return_code in _CANNOT_RUN:
            said = ended.stderr or ended.stdout
            if any(text in said for text in _NO_SHELL):
                raise SandboxFault(f"The sandbox is broken: its shell does not start ({said.strip()[:300]}).")
            if said.startswith(_RUNTIME):
                return ExecResult(stdout="", stderr=said, return_code=ended.return_code)
            if lost := await find_losses(self._engine, self._running().name):
                raise SandboxFault(f"The sandbox is broken: {', '.join(lost)} cannot be run any more.")
        return ExecResult(stdout=ended.stdout, stderr=ended.stderr, return_code=ended.return_code)

    async def _note_memory_kill(self) -> None:
        container = self._container
        if container is not None and container.started and not self._memory_killed:
            self._memory_killed = await container.memory_kills() > 0

    def _image_request(self, force_build: bool) -> ImageRequest:
        return ImageRequest(
            task_name=self.environment_name,
            environment_dir=self.environment_dir / self._service.context,
            docker_image=self.task_env_config.docker_image or self._service.image,
            force_build=force_build,
            build_timeout_sec=self.task_env_config.build_timeout_sec,
            build_args=self._service.build_args,
            dockerfile=self._service.dockerfile,
            target=self._service.target,
        )

    def _wanted_network(self) -> NetworkPolicy | None:
        """The task's own policy, or the operator's for a task that says nothing; ``None`` is the machine's network."""
        default = self._operators_network()
        if default is DefaultNetwork.NONE or (default is not None and self._service.network_mode == "none"):
            self._network_policy = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
        return None if default is DefaultNetwork.HOST else self._network_policy

    def _plan(self, name: str, image: Image) -> ContainerPlan:
        return ContainerPlan(
            name=name,
            image=image,
            record=SandboxRecord.new(name, self.owner),
            service=self._service,
            env={**self._service.env, **self._startup_env()},
            cpus=self._effective_cpus or self._service.cpus or self.options.default_cpus,
            memory_mb=self._effective_memory_mb or self._service.memory_mb or self.options.default_memory_mb,
            pids=min(self._service.pids or self.options.default_pids, self.options.default_pids),
            asked=Asked.of(self._service.dns, self._network_policy),
            storage_mb=self.task_env_config.storage_mb or DEFAULT_STORAGE_MB,
            workdir=self.task_env_config.workdir or self._service.workdir,
            # A dedicated verifier's image owns its tests, and no agent is in it who could do anything to them.
            guards_tests=self._enable_environment_dir_upload,
        )

    def _absolute(self, path: str) -> str:
        """Relative paths start where commands do."""
        workdir = self.task_env_config.workdir or self._running().settings.workdir
        return str(Path("/", workdir, path)) + "/" * path.endswith("/")

    def _running(self) -> Container:
        if self._storage is not None and self._storage.removed_because:
            raise SandboxFault(self._storage.removed_because)
        if self._container is None or not self._container.started:
            raise SandboxFault("The sandbox has not been started.")
        return self._container

    def _the_warden(self) -> Warden:
        if self._warden is None:
            container = self._running()
            ward = Ward(
                container.name, container.limits, container.labels, container.profiles.warden, container.residence
            )
            self._warden = Warden(self._engine, ward)
        return self._warden

    @property
    def _machine(self) -> Machine:
        return Machine.shared(self.options.cache)

    @cached_property
    def _enters(self) -> bool:
        return self._is_local(self.options.docker_host)

    @property
    def _routed(self) -> bool:
        return can_route() and self._enters

    def _gauge(self, container: Container) -> Gauge:
        if container.layers is not None:
            return LayersGauge(self._machine.mounts, container.layers, container.name)
        return EngineGauge(self._engine, container.name)

    def _view(self) -> LocalView | None:
        """The current view of the sandbox, where it can be had without the engine."""
        residence = self._running().residence
        if residence is None or not residence.alive:
            return None
        return self._the_warden().view if self.grading else residence.view

    def _view_of_root(self, user: str | int | None) -> LocalView | None:
        """The same if this user may do everything, so that what a command of theirs would do can be done without it."""
        wanted = self._resolve_user(user)
        name = self._running().settings.user if wanted is None else str(wanted)
        return self._view() if name in ("", "root", "0") else None

    def _files(self) -> Files:
        if (view := self._view()) is not None:
            return view
        return GradingFiles(self._the_warden()) if self.grading else AgentFiles(self._engine, self._running().name)

    def _listener(self) -> Listener | None:
        callback = self._output_callback()
        if callback is None:
            return None
        return lambda text, error: callback(text, "stderr" if error else "stdout")
