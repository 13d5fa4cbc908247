"""The daemonless sandbox as a Harbor environment: a root of an image's layers, crun or runc, and no service to ask.

The runner uses it through Harbor's ``Trial``; so does the stock CLI: ``harbor run … -e
seatrial.sandboxes.oci:OciEnvironment``. This file translates Harbor's calls; a ``Pod`` is the sandbox itself.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, override

from harbor.environments.base import ExecResult
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.errors import SandboxFault, SeatrialError
from seatrial.sandboxes import oci_check
from seatrial.sandboxes.accounts import UnknownUser
from seatrial.sandboxes.cgroups import Limits
from seatrial.sandboxes.check import Finding
from seatrial.sandboxes.command import Command, Ended
from seatrial.sandboxes.container_spec import DEFAULT_PATH
from seatrial.sandboxes.image import Image, ImageProvider, ImageRequest
from seatrial.sandboxes.images.assembly import shared_oci_images
from seatrial.sandboxes.machine import Machine
from seatrial.sandboxes.network import SandboxNetwork
from seatrial.sandboxes.oci_facts import facts_of
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.output import Listener
from seatrial.sandboxes.pod import Call, Pod, PodPlan
from seatrial.sandboxes.sandbox import Sandbox, SandboxFacts
from seatrial.sandboxes.suspicion import find_suspicions
from seatrial.sandboxes.terminal import Terminal

DEFAULT_STORAGE_MB = 10240
_CANNOT_RUN = 126
_NOT_FOUND = 127


class NetworkProvider(Protocol):
    """Where a sandbox gets its network from: ``network.SandboxNetworks``."""

    async def acquire(self, policy: NetworkPolicy, sandbox_id: str) -> SandboxNetwork: ...

    async def host(self, sandbox_id: str) -> SandboxNetwork: ...


async def probe(options: SandboxOptions) -> list[Finding]:
    """What of this sandbox works here, for ``doctor`` and for ``--sandbox auto``."""
    return await oci_check.probe(options, Machine.shared(options.cache))


class OciEnvironment(Sandbox):
    """A sandbox without a daemon."""

    def __init__(
        self,
        *args: Any,
        images: ImageProvider | None = None,
        networks: NetworkProvider | None = None,
        privileged: bool = False,
        **kwargs: Any,
    ) -> None:
        self._given_images = images
        self._given_networks = networks
        self._privileged = privileged
        self._pod: Pod | None = None
        self._starting: asyncio.Future[None] | None = None
        self._network: SandboxNetwork | None = None
        self._image: Image | None = None
        self._view = "agent"
        self._suspicions: tuple[str, ...] = ()
        self._removed_because = ""
        self._storage_exceeded_mb = 0
        self._held = ExitStack()
        self._services: list[Command] = []
        self._drains: set[asyncio.Task[None]] = set()
        super().__init__(*args, **kwargs)
        self._machine = Machine.shared(self.options.cache)
        self._terminal = Terminal(self.options.cache)

    @staticmethod
    @override
    def type() -> str:
        return "oci"

    @classmethod
    @override
    def preflight(cls) -> None:
        try:
            oci_check.require()
        except SeatrialError as problem:
            raise SystemExit(str(problem)) from None

    @override
    def _validate_definition(self) -> None:
        """A Dockerfile, a ready image, or a compose file that is no more than one service."""
        definitions = [self.environment_dir / name for name in ("Dockerfile", "docker-compose.yaml")]
        if not self.task_env_config.docker_image and not any(path.is_file() for path in definitions):
            raise FileNotFoundError(f"{self.environment_dir} has neither a Dockerfile nor a docker-compose.yaml.")

    @property
    @override
    def facts(self) -> SandboxFacts:
        return facts_of(
            self._machine,
            self._pod,
            self._image,
            network=self._network.description if self._network else "",
            suspicions=self._suspicions,
            storage_exceeded_mb=self._storage_exceeded_mb,
        )

    @override
    async def start(self, force_build: bool) -> None:
        await self._enter("build")
        images = self._given_images or shared_oci_images(self.options).resolver
        self._image = image = await images.resolve(self._image_request(force_build))
        await self._enter("start")
        self._held.enter_context(images.hold(image))
        sandbox = f"st-{uuid.uuid4().hex[:12]}"
        self._network = await self._connect(sandbox)
        self._pod = pod = Pod(self._machine, self._plan(sandbox, image, self._network))
        self._starting = asyncio.ensure_future(self._machine.mounts.carry(pod.start))
        await asyncio.shield(self._starting)
        self._machine.storage.add(sandbox, pod.root.upper, pod.plan.limits.storage_mb << 20, self._on_storage_exceeded)
        if image.config.entrypoint:
            await self._serve([*image.config.entrypoint, "sh", "-c", "sleep infinity"])
        await self._upload_environment_dir_after_start()

    @override
    async def stop(self, delete: bool) -> None:
        """Removes everything, whatever Harbor says: nothing could be done with what stayed."""
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
        try:
            if self._pod is not None:
                self._machine.storage.remove(self._pod.plan.sandbox)
                await self._machine.mounts.carry(self._pod.stop)
        finally:
            await self._let_go()

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        await self._terminal.offer(self, command)
        pod, view = self._running(), self._view
        call = self._call([pod.shell, "-c", command], cwd, env, user)
        try:
            running = await self._spawn(pod, view, call)
        except UnknownUser as unknown:
            return ExecResult(stdout="", stderr=str(unknown), return_code=_CANNOT_RUN)
        try:
            running.listen(*self._listeners())
            async with asyncio.timeout(timeout_sec or None):
                ended = await running.wait()
        except (TimeoutError, asyncio.CancelledError) as interruption:
            await self._kill(pod, view, running)
            if isinstance(interruption, TimeoutError):
                raise RuntimeError(f"Command timed out after {timeout_sec} seconds") from None
            raise
        finally:
            self._dismiss(running)
        return await self._judged(pod, ended)

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        transfer = self._running().transfer(self._view)
        await self._machine.mounts.carry(transfer.put_file, Path(source_path), self._absolute(target_path))

    @override
    async def put_dir(self, source_dir: Path, target_dir: str) -> None:
        transfer = self._running().transfer(self._view)
        await self._machine.mounts.carry(transfer.put_tree, source_dir, self._absolute(target_dir))

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        transfer = self._running().transfer(self._view)
        await self._machine.mounts.carry(transfer.get_file, self._absolute(source_path), Path(target_path))

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        transfer = self._running().transfer(self._view)
        left_out = await self._machine.mounts.carry(transfer.get_tree, self._absolute(source_dir), Path(target_dir))
        for line in left_out:
            self.logger.warning("Not downloaded from %s: %s", source_dir, line)

    @override
    async def begin_grading(self) -> None:
        pod = self._running()
        if self._image is not None and pod.findings.root != "copy":
            search_path = self._image.config.env.get("PATH", DEFAULT_PATH)
            self._suspicions = await self._machine.mounts.carry(
                find_suspicions, self._machine.mounts, pod.root.upper, self._image.layers, search_path
            )
        self._view = "grading"

    @override
    async def end_grading(self) -> None:
        self._view = "agent"
        transfer = self._running().transfer("grading")
        await self._machine.mounts.carry(transfer.empty, ["/tests", "/logs/verifier"])

    @override
    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        if self._network is not None:
            await self._network.apply(network_policy)

    def _image_request(self, force_build: bool) -> ImageRequest:
        return ImageRequest(
            task_name=self.environment_name,
            environment_dir=self.environment_dir,
            docker_image=self.task_env_config.docker_image,
            force_build=force_build,
            build_timeout_sec=self.task_env_config.build_timeout_sec,
        )

    async def _connect(self, sandbox: str) -> SandboxNetwork:
        """The task's own policy, or the operator's for a task that says nothing."""
        networks = self._given_networks or self._machine.networks.of(self.options, self.owner.install)
        silent = self.task_env_config.network_mode is None and self.network_policy == NetworkPolicy()
        if silent and self.options.network_mode == "host":
            return await networks.host(sandbox)
        if silent and self.options.network_mode == "none":
            self._network_policy = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
        return await networks.acquire(self.network_policy, sandbox)

    def _plan(self, sandbox: str, image: Image, network: SandboxNetwork) -> PodPlan:
        return PodPlan(
            sandbox=sandbox,
            owner=self.owner,
            image=image,
            limits=Limits(
                cpus=self._effective_cpus or self.options.default_cpus,
                memory_mb=self._effective_memory_mb or self.options.default_memory_mb,
                pids=self.options.default_pids,
                storage_mb=self._effective_storage_mb or DEFAULT_STORAGE_MB,
            ),
            hosts=network.hosts,
            resolv_conf=network.resolv_conf,
            network=network.netns_path,
            host_network=network.netns_path is None,
            privileged=self._privileged and self.options.allow_privileged,
            open_dirs=tuple(self._mount_targets(writable_only=True)),
            workdir=self.task_env_config.workdir or image.config.workdir,
        )

    def _call(self, arguments: list[str], cwd: str | None, env: dict[str, str] | None, user: str | int | None) -> Call:
        assert self._image is not None
        config = self._image.config
        wanted = self._resolve_user(user)
        return Call(
            arguments=arguments,
            environment={**config.env, **(self._merge_env(env) or {})},
            cwd=self._absolute(cwd or ""),
            user=config.user if wanted is None else wanted,
        )

    def _absolute(self, path: str) -> str:
        """Relative paths start where commands do."""
        image_dir = self._image.config.workdir if self._image else "/"
        return str(Path("/", self.task_env_config.workdir or image_dir or "/", path)) + "/" * path.endswith("/")

    def _running(self) -> Pod:
        if self._removed_because:
            raise SandboxFault(self._removed_because)
        if self._pod is None:
            raise SandboxFault("The sandbox has not been started.")
        return self._pod

    async def _spawn(self, pod: Pod, view: str, call: Call) -> Command:
        spawning = asyncio.ensure_future(self._machine.mounts.start(pod.spawn, view, call))
        try:
            return await asyncio.shield(spawning)
        except asyncio.CancelledError:
            (started,) = await asyncio.gather(spawning, return_exceptions=True)
            if isinstance(started, Command):
                started.listen(None, None)
                await self._kill(pod, view, started)
                self._dismiss(started)
            raise

    async def _kill(self, pod: Pod, view: str, running: Command) -> None:
        await asyncio.shield(self._machine.mounts.carry(pod.kill_command, view, running))
        await running.gone()

    def _dismiss(self, running: Command) -> None:
        running.forget()
        for drain in running.lingering:
            self._drains.add(drain)
            drain.add_done_callback(self._drains.discard)
        running.close()

    async def _serve(self, arguments: list[str]) -> None:
        """Starts what the image starts, as Docker would; it goes on in the background."""
        service = await self._spawn(self._running(), "agent", self._call(arguments, None, None, None))
        service.listen(None, None)
        service.forget()
        self._services.append(service)

    def _listeners(self) -> tuple[Listener | None, Listener | None]:
        callback = self._output_callback()
        if callback is None:
            return None, None
        return lambda text: callback(text, "stdout"), lambda text: callback(text, "stderr")

    async def _judged(self, pod: Pod, ended: Ended) -> ExecResult:
        """A command that fails is a result; a sandbox in which none can run any more is a fault."""
        if ended.fault or ended.code in (_CANNOT_RUN, _NOT_FOUND) or (ended.code == 137 and not pod.alive):
            broken = self._removed_because or await self._machine.mounts.carry(pod.broken)
            if broken:
                raise SandboxFault(f"The sandbox is broken: {broken}.")
        if ended.fault:
            missing = "not found" in ended.fault.lower() or "no such file" in ended.fault.lower()
            return ExecResult(
                stdout=ended.stdout,
                stderr=ended.stderr or f"{ended.fault}\n",
                return_code=_NOT_FOUND if missing else _CANNOT_RUN,
            )
        return ExecResult(stdout=ended.stdout, stderr=ended.stderr, return_code=ended.code)

    def _on_storage_exceeded(self, size: int, in_danger: bool) -> None:
        pod = self._pod
        if pod is None:
            return
        self._storage_exceeded_mb = size >> 20
        limit = pod.plan.limits.storage_mb
        if in_danger:
            self._removed_because = (
                f"The sandbox was removed: it filled {size >> 20} MB of disk and may have {limit} MB."
            )
            self.logger.warning("%s", self._removed_because)
            self._background(self._machine.mounts.carry(pod.stop))
        else:
            self.logger.warning("Processes killed: %d MB of disk used, %d MB allowed.", size >> 20, limit)
            self._background(self._machine.mounts.carry(pod.kill_processes, self._view))

    def _background(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._drains.add(task)
        task.add_done_callback(self._drains.discard)

    async def _let_go(self) -> None:
        for service in self._services:
            await service.gone()
            self._dismiss(service)
        self._services.clear()
        for drain in list(self._drains):
            drain.cancel()
        await asyncio.gather(*self._drains, return_exceptions=True)
        if self._network is not None:
            await self._network.release()
        self._held.close()
