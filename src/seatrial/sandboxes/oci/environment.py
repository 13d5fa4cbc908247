"""The daemonless sandbox as a Harbor environment: a root of an image's layers, crun or runc, and no service to ask.

The runner uses it through Harbor's ``Trial``; so does the stock CLI: ``harbor run … -e
seatrial.sandboxes.oci:OciEnvironment``. This file translates Harbor's calls; a ``Pod`` is the sandbox itself.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, override

from harbor.environments.base import ExecResult
from harbor.models.task.config import NetworkPolicy

from seatrial.errors import SandboxFault, SeatrialError
from seatrial.growing_files import FileView
from seatrial.sandboxes.check import Finding
from seatrial.sandboxes.host.accounts import UnknownUser
from seatrial.sandboxes.host.storage import removal
from seatrial.sandboxes.host.transfer import LeftOut, Transfer
from seatrial.sandboxes.images.assembly import shared_oci_images
from seatrial.sandboxes.images.image import ImageProvider
from seatrial.sandboxes.network.names import Asked
from seatrial.sandboxes.network.network import SandboxNetwork
from seatrial.sandboxes.oci import probe as oci_check
from seatrial.sandboxes.oci.command import Ended
from seatrial.sandboxes.oci.container_spec import DEFAULT_PATH
from seatrial.sandboxes.oci.design import SandboxDesign
from seatrial.sandboxes.oci.facts import facts_of
from seatrial.sandboxes.oci.layer_suspicion import find_suspicions
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.oci.pod import Call, Pod
from seatrial.sandboxes.oci.pod_commands import Listeners, PodCommands
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.sandbox import Sandbox, SandboxFacts

_CANNOT_RUN = 126
_NOT_FOUND = 127
_KILLED = 137


class NetworkProvider(Protocol):
    """Where a sandbox gets its network from: ``network_set.SandboxNetworks``."""

    async def acquire(self, policy: NetworkPolicy, sandbox_id: str) -> SandboxNetwork: ...

    async def host(self, sandbox_id: str) -> SandboxNetwork: ...


async def probe(options: SandboxOptions) -> list[Finding]:
    """What of this sandbox works here, for ``doctor`` and for ``--sandbox auto``."""
    return await oci_check.probe(options, Machine.shared(options.cache, options.oci_runtime))


class OciEnvironment(Sandbox):
    """A sandbox without a daemon."""

    def __init__(
        self,
        *args: Any,
        images: ImageProvider | None = None,
        networks: NetworkProvider | None = None,
        **kwargs: Any,
    ) -> None:
        self._given_images = images
        self._given_networks = networks
        self._pod: Pod | None = None
        self._commands: PodCommands | None = None
        self._starting: asyncio.Future[None] | None = None
        self._network: SandboxNetwork | None = None
        self._view = "agent"
        self._suspicions: tuple[str, ...] = ()
        self._removed_because = ""
        self._storage_exceeded_mb = 0
        super().__init__(*args, **kwargs)
        self._machine = Machine.shared(self.options.cache, self.options.oci_runtime)

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

    @property
    @override
    def facts(self) -> SandboxFacts:
        self._note_full_disk()
        return facts_of(
            self._machine,
            self._pod,
            self._image,
            network=self._network.description if self._network else "",
            suspicions=self._suspicions,
            storage_exceeded_mb=self._storage_exceeded_mb,
        )

    @property
    @override
    def network_namespace(self) -> Path | None:
        return self._network.netns_path if self._network else None

    @override
    async def start(self, force_build: bool) -> None:
        images = self._given_images or shared_oci_images(self.options).resolver
        image = await self._bring_image(images, force_build)
        sandbox = f"st-{uuid.uuid4().hex[:12]}"
        self._network = await self._connect(sandbox)
        open_dirs = self._mount_targets(writable_only=True)
        asked = Asked.of(self._definition.service.dns, self.network_policy)
        self._pod = pod = Pod(self._machine, self._design.plan(sandbox, image, self._network, open_dirs, asked))
        self._commands = PodCommands(self._machine.mounts, pod)
        self._starting = asyncio.ensure_future(self._machine.mounts.carry(pod.start))
        await asyncio.shield(self._starting)
        limit = pod.plan.limits.storage_mb << 20
        self._machine.storage.add(sandbox, pod.meter(), limit, self._on_storage_exceeded)
        if first_command := self._design.first_command(image):
            await self._commands.serve(self._call(first_command))
        await self._upload_environment_dir_after_start()

    @override
    async def stop(self, delete: bool) -> None:
        """Removes everything, whatever Harbor says: nothing could be done with what stayed."""
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
        try:
            if self._pod is not None:
                self._note_full_disk()
                self._machine.storage.remove(self._pod.plan.sandbox)
                await self._machine.mounts.carry(self._pod.stop)
        finally:
            if self._commands is not None:
                await self._commands.close()
            if self._network is not None:
                await self._network.release()
            self._held.close()

    @override
    async def _allow(self, script: str, user: str | int | None) -> bool:
        transfer = self._transfer()
        return self._is_root(user) and await self._machine.mounts.start(transfer.make_executable, script)

    @override
    async def _run(
        self,
        command: str,
        cwd: str | None,
        env: dict[str, str] | None,
        timeout_sec: int | None,
        user: str | int | None,
    ) -> ExecResult:
        pod, commands = self._running()
        call = self._call([pod.shell, "-c", command], cwd, env, user)
        try:
            ended = await commands.run(self._view, call, timeout_sec, self._listeners())
        except UnknownUser as unknown:
            return ExecResult(stdout="", stderr=str(unknown), return_code=_CANNOT_RUN)
        except TimeoutError:
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds") from None
        return await self._judged(pod, ended)

    @override
    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        if not self._is_root(user):
            return bool(await super().is_dir(path, user))
        return await self._machine.mounts.start(self._transfer().is_dir, self._absolute(path))

    @override
    async def is_file(self, path: str, user: str | int | None = None) -> bool:
        if not self._is_root(user):
            return bool(await super().is_file(path, user))
        return await self._machine.mounts.start(self._transfer().is_file, self._absolute(path))

    @override
    async def put_file(self, source_path: Path, target_path: str) -> None:
        await self._machine.mounts.carry(self._transfer().put_file, source_path, target_path)

    @override
    async def put_dir(self, source_dir: Path, target_dir: str) -> None:
        await self._machine.mounts.carry(self._transfer().put_tree, source_dir, target_dir)

    @override
    async def get_file(self, source_path: str, target_path: Path) -> None:
        limits = self.transfer_limits
        await self._machine.mounts.carry(self._transfer().get_file, source_path, target_path, limits)

    @override
    async def get_dir(self, source_dir: str, target_dir: Path, first: Sequence[str]) -> LeftOut:
        limits = self.transfer_limits
        return await self._machine.mounts.carry(self._transfer().get_tree, source_dir, target_dir, limits, first=first)

    @override
    async def begin_grading(self) -> None:
        pod, _ = self._running()
        await self._machine.mounts.carry(pod.begin_grading)
        await self._note_suspicions(pod)
        self._note_full_disk()
        await self._machine.mounts.carry(pod.make_room)
        self._view = "grading"

    @override
    async def look_again(self) -> None:
        pod, _ = self._running()
        if pod.findings.left_running:
            await self._note_suspicions(pod)

    async def _note_suspicions(self, pod: Pod) -> None:
        if self._image is None or pod.findings.root == "copy":
            return
        search_path = self._image.config.env.get("PATH", DEFAULT_PATH)
        found = await self._machine.mounts.carry(find_suspicions, pod.root.upper, self._image.layers, search_path)
        self._suspicions = tuple(sorted({*self._suspicions, *found}))

    @override
    async def end_grading(self) -> None:
        pod, _ = self._running()
        await self._machine.mounts.carry(pod.end_grading)
        self._view = "agent"

    @override
    async def _look(
        self, folders: Mapping[str, str], seen: Mapping[str, int], wanted: Callable[[str], bool]
    ) -> Sequence[FileView] | None:
        pod, _ = self._running()
        if not pod.findings.started:
            return None
        return await self._machine.mounts.carry(pod.look, self._view, folders, seen, wanted)

    @override
    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        if self._network is not None:
            await self._network.apply(network_policy)

    @cached_property
    def _design(self) -> SandboxDesign:
        return SandboxDesign(self._definition, self.options, self.owner)

    async def _connect(self, sandbox: str) -> SandboxNetwork:
        networks = self._given_networks or self._machine.networks.of(self.options, self.owner.install)
        policy = self._wanted_network()
        return await (networks.host(sandbox) if policy is None else networks.acquire(policy, sandbox))

    def _call(
        self,
        arguments: list[str],
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | int | None = None,
    ) -> Call:
        assert self._image is not None
        wanted = self._resolve_user(user)
        return Call(
            arguments=arguments,
            environment={**self._design.environment(self._image), **(self._merge_env(env) or {})},
            cwd=self._absolute(cwd or ""),
            user=self._design.user(self._image) if wanted is None else wanted,
        )

    def _is_root(self, user: str | int | None) -> bool:
        """Whether a command of this user may do everything, so that what it would do can be done without it."""
        wanted = self._resolve_user(user)
        if wanted is None:
            wanted = self._design.user(self._image) if self._image is not None else None
        return wanted in (None, "", "root", 0, "0")

    @override
    def _absolute(self, path: str) -> str:
        assert self._image is not None
        return str(Path("/", self._definition.workdir(self._image), path)) + "/" * path.endswith("/")

    def _running(self) -> tuple[Pod, PodCommands]:
        if self._removed_because:
            raise SandboxFault(self._removed_because)
        if self._pod is None or self._commands is None:
            raise SandboxFault("The sandbox has not been started.")
        return self._pod, self._commands

    def _transfer(self) -> Transfer:
        return self._running()[0].transfer(self._view)

    def _listeners(self) -> Listeners:
        callback = self._output_callback()
        if callback is None:
            return None, None
        return lambda text: callback(text, "stdout"), lambda text: callback(text, "stderr")

    async def _judged(self, pod: Pod, ended: Ended) -> ExecResult:
        """A command that fails is a result; a sandbox in which none can run any more is a fault."""
        if self._removed_because:
            raise SandboxFault(self._removed_because)
        killed = ended.code == _KILLED and not pod.alive(self._view)
        doubtful = ended.fault or ended.code in (_CANNOT_RUN, _NOT_FOUND) or killed
        if doubtful and (broken := await self._machine.mounts.carry(pod.broken, self._view)):
            raise SandboxFault(f"The sandbox is broken: {broken}")
        if not ended.fault:
            return ExecResult(stdout=ended.stdout, stderr=ended.stderr, return_code=ended.code)
        missing = "no such file" in ended.fault.lower()
        return ExecResult(
            stdout=ended.stdout,
            stderr=ended.stderr or f"{ended.fault}\n",
            return_code=_NOT_FOUND if missing else _CANNOT_RUN,
        )

    def _on_storage_exceeded(self, size: int, in_danger: bool) -> None:
        if self._pod is None or self._commands is None:
            return
        pod, used, limit = self._pod, size >> 20, self._pod.plan.limits.storage_mb
        was_told, self._storage_exceeded_mb = bool(self._storage_exceeded_mb), max(used, self._storage_exceeded_mb)
        if pod.root.disk is not None and not in_danger:
            if not was_told:
                self.logger.warning("The sandbox has filled the %d MB of disk that it is allowed.", limit)
            return
        if in_danger:
            self._removed_because = removal(used, limit)
            self._commands.do_behind(self._machine.mounts.carry(pod.stop))
        else:
            self._commands.do_behind(self._machine.mounts.carry(pod.kill_processes, self._view))
        self.logger.warning("%d MB of disk used, %d MB allowed: the sandbox's processes are killed.", used, limit)

    def _note_full_disk(self) -> None:
        """Between two looks of the watch, too."""
        if self._pod is not None and (used := self._pod.meter().notice()):
            self._on_storage_exceeded(used, in_danger=False)
