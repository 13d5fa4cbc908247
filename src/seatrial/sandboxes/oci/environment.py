"""The daemonless sandbox as a Harbor environment: a root of an image's layers, run by crun or runc without a service.

The runner uses it through Harbor's ``Trial``; so does the stock CLI: ``harbor run … -e
seatrial.sandboxes.oci:OciEnvironment``. This file translates Harbor's calls; a ``Pod`` is the sandbox itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, override

from seatrial.errors import SandboxFault, SeatrialError
from seatrial.sandboxes.call import Call
from seatrial.sandboxes.facts import SandboxFacts
from seatrial.sandboxes.host.accounts import UnknownUser
from seatrial.sandboxes.host.container_defaults import DEFAULT_PATH
from seatrial.sandboxes.host.layer_suspicion import find_suspicions
from seatrial.sandboxes.host.notice_board import NoticeBoards
from seatrial.sandboxes.host.storage import StorageLimit
from seatrial.sandboxes.host.view import SandboxView
from seatrial.sandboxes.images.assembly import shared_oci_images
from seatrial.sandboxes.images.image import Image, ImageProvider
from seatrial.sandboxes.kept_state import SavedLayer
from seatrial.sandboxes.network.names import TaskNameServers
from seatrial.sandboxes.network.network import SandboxNetwork
from seatrial.sandboxes.network.network_set import SandboxNetworks
from seatrial.sandboxes.oci.command import Call as PodCall
from seatrial.sandboxes.oci.facts import facts_of
from seatrial.sandboxes.oci.gvisor.pod import GvisorPod
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.oci.pod import Pod
from seatrial.sandboxes.oci.pod_commands import PodCommands
from seatrial.sandboxes.oci.pod_plan import PodPlan, SandboxDesign
from seatrial.sandboxes.oci.probe import require
from seatrial.sandboxes.oci.terminal_line import TerminalLine
from seatrial.sandboxes.output import Ended
from seatrial.sandboxes.sandbox import Sandbox

_CANNOT_RUN = 126
_NOT_FOUND = 127
_KILLED = 137


class OciEnvironment(Sandbox):
    """A sandbox without a daemon."""

    _network: SandboxNetwork | None

    def __init__(self, *args: Any, networks: SandboxNetworks | None = None, **kwargs: Any) -> None:
        self._given_networks = networks
        self._pod: Pod | None = None
        self._commands: PodCommands | None = None
        self._line: TerminalLine | None = None
        self._storage: StorageLimit | None = None
        self._suspicions: tuple[str, ...] = ()
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
            require()
        except SeatrialError as problem:
            raise SystemExit(str(problem)) from None

    @property
    @override
    def _applied(self) -> SandboxFacts:
        self._record_full_disk()
        return facts_of(
            self._machine,
            self._pod,
            network=self._network.description if self._network else "",
            suspicions=self._suspicions,
            storage_exceeded_mb=self._storage.exceeded_mb if self._storage else 0,
        )

    @override
    def _shared_images(self) -> ImageProvider:
        return shared_oci_images(self.options).resolver

    @override
    async def _start(self, image: Image) -> None:
        sandbox, mounts = f"st-{uuid.uuid4().hex[:12]}", self._machine.mounts
        self._network = await self._connect(sandbox)
        open_dirs = self._mount_targets(writable_only=True)
        asked = TaskNameServers.of(self._definition.service.dns, self.network_policy)
        plan = self._design.plan(sandbox, image, self._network, open_dirs, asked)
        final = self.final_state.copy if self.final_state else None
        self._pod = pod = self._new_pod(replace(plan, final_state=final))
        self._commands, self._line = PodCommands(mounts, pod), TerminalLine(pod)
        await self._finish_even_if_cancelled(mounts.carry(pod.start))
        limit_mb = pod.plan.limits.storage_mb
        self._storage = StorageLimit(
            limit_mb,
            kill=lambda: mounts.carry(pod.kill_processes, self._view_name),
            remove=lambda: mounts.carry(pod.stop),
            has_own_disk=pod.root.disk is not None,
        )
        self._machine.storage.add(sandbox, pod.meter(), limit_mb << 20, self._storage.exceeded)
        if first_command := self._design.first_command(image):
            await self._commands.serve(self._process(first_command, None, self._merge_env(None) or {}, None))

    @override
    async def _remove(self) -> None:
        if self._line is not None:
            self._line.close()
        try:
            if self._pod is not None:
                self._record_full_disk()
                self._machine.storage.remove(self._pod.plan.sandbox)
                if self._storage is not None:
                    await self._storage.settled()
                await self._machine.mounts.carry(self._pod.stop)
        finally:
            if self._commands is not None:
                await self._commands.close()

    @override
    async def _run(self, call: Call, timeout_sec: int | None) -> Ended:
        pod, commands = self._running()
        if self._storage is not None:
            await self._storage.settled()
        process = self._process([pod.shell, "-c", call.command], call.cwd, call.env, call.user)
        try:
            if (answer := await self._typed(call.command, process, timeout_sec)) is not None:
                return answer
            ended = await commands.run(self._view_name, process, timeout_sec, self._output_callback())
        except UnknownUser as unknown:
            return Ended(_CANNOT_RUN, stdout="", stderr=str(unknown))
        return await self._judged(pod, ended)

    async def _typed(self, command: str, process: PodCall, timeout_sec: int | None) -> Ended | None:
        """The answer to a plain tmux command; ``None`` for all others, and for the verifier's."""
        if self._line is None or self.grading:
            return None
        of_kit = self._terminal.tmux_is_of_kit
        return await self._line.run(command, process, of_kit, timeout_sec, self._output_callback())

    @property
    @override
    def files(self) -> SandboxView:
        return self._running()[0].view(self._view_name)

    @override
    async def lend(self, directory: Path, place: str) -> bool:
        pod, _ = self._running()
        return await self._machine.mounts.start(pod.lend, directory, place)

    @property
    @override
    def can_save_layers(self) -> bool:
        """A part of gVisor's files is in its memory."""
        return not self._machine.runtime.is_gvisor

    @property
    @override
    def notices(self) -> NoticeBoards:
        return self._machine.notices

    @override
    async def save_layer(self, target: Path, below: Image) -> SavedLayer:
        pod, _ = self._running()
        await self._machine.mounts.carry(pod.save_layer, target / "layer")
        return SavedLayer(target.name)

    @override
    async def with_layer(self, image: Image, name: str) -> Image | None:
        layer = self.options.kits_dir / "layers" / name / "layer"
        if not layer.is_dir():
            return None
        return image.model_copy(update={"layers": (layer, *image.layers), "below": image.digest})

    @override
    async def save_state(self, target: Path) -> str:
        pod, _ = self._running()
        if self._started_image.below:
            return "the agent's layer may not be there later"
        return await self._machine.mounts.carry(pod.save_state, target)

    @override
    async def begin_grading(self) -> None:
        pod, _ = self._running()
        await self._machine.mounts.carry(pod.begin_grading)
        await self._add_suspicions(pod)
        self._record_full_disk()
        await self._machine.mounts.carry(pod.make_room)
        self.grading = True

    @override
    async def look_again(self) -> None:
        pod, _ = self._running()
        if pod.findings.left_running:
            await self._add_suspicions(pod)

    @override
    async def end_grading(self) -> None:
        pod, _ = self._running()
        await self._machine.mounts.carry(pod.end_grading)
        self.grading = False

    @property
    def _view_name(self) -> str:
        return "grading" if self.grading else "agent"

    @cached_property
    def _design(self) -> SandboxDesign:
        return SandboxDesign(self._definition, self.options, self.owner)

    async def _add_suspicions(self, pod: Pod) -> None:
        image = self._started_image
        if pod.findings.root != "copy":
            search_path = image.config.env.get("PATH", DEFAULT_PATH)
            found = await self._machine.mounts.carry(find_suspicions, pod.root.upper, image.layers, search_path)
            self._suspicions = tuple(sorted({*self._suspicions, *found}))

    async def _connect(self, sandbox: str) -> SandboxNetwork:
        networks = self._given_networks or self._machine.networks.of(self.options, self.owner.install)
        policy = self._wanted_network()
        return await (networks.host(sandbox) if policy is None else networks.acquire(policy, sandbox))

    def _process(
        self, arguments: list[str], cwd: str | None, env: Mapping[str, str], user: str | int | None
    ) -> PodCall:
        environment = {**self._design.environment(self._started_image), **env}
        return PodCall(arguments, environment, cwd=self._absolute(cwd or ""), user=self._user(user))

    def _new_pod(self, plan: PodPlan) -> Pod:
        return GvisorPod(self._machine, plan) if self._machine.runtime.is_gvisor else Pod(self._machine, plan)

    def _running(self) -> tuple[Pod, PodCommands]:
        if self._storage is not None and self._storage.removed_because:
            raise SandboxFault(self._storage.removed_because)
        if self._pod is None or self._commands is None:
            raise SandboxFault("The sandbox has not been started.")
        return self._pod, self._commands

    async def _judged(self, pod: Pod, ended: Ended) -> Ended:
        """A command that fails is a result. A sandbox in which no command can run any more is a fault."""
        self._running()
        killed = ended.return_code == _KILLED and not pod.alive(self._view_name)
        doubtful = ended.fault or ended.return_code in (_CANNOT_RUN, _NOT_FOUND) or killed
        if doubtful and (broken := await self._machine.mounts.carry(pod.broken, self._view_name)):
            raise SandboxFault(f"The sandbox is broken: {broken}")
        if not ended.fault:
            return ended
        code = _NOT_FOUND if "no such file" in ended.fault.lower() else _CANNOT_RUN
        return Ended(code, stdout=ended.stdout, stderr=ended.stderr or f"{ended.fault}\n")

    def _record_full_disk(self) -> None:
        """Records a disk that became full since the storage watch last looked."""
        if self._pod is not None and self._storage is not None and (used := self._pod.meter().notice()):
            self._storage.exceeded(used, in_danger=False)
