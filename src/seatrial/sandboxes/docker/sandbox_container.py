"""A sandbox in a container engine, from its start to its removal: a container, its sidecar and its storage limit.

``docker.DockerEnvironment`` is the only caller and knows Harbor; this knows the engine. Where the container's processes
can be entered from here (``local_container``), it does not need the engine for files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from seatrial.errors import SandboxFault
from seatrial.sandboxes.call import Call
from seatrial.sandboxes.docker.changes import find_losses
from seatrial.sandboxes.docker.changes import find_suspicions as find_in_engine
from seatrial.sandboxes.docker.client import EngineClient
from seatrial.sandboxes.docker.command import MARK, EngineCommands, Order
from seatrial.sandboxes.docker.container import Container, ContainerPlan
from seatrial.sandboxes.docker.entry import find_account
from seatrial.sandboxes.docker.files import AgentFiles, GradingFiles
from seatrial.sandboxes.docker.network import EngineNetwork
from seatrial.sandboxes.docker.seccomp import Profiles
from seatrial.sandboxes.docker.sidecar import Sidecar
from seatrial.sandboxes.docker.storage import EngineGauge, Gauge, LayersGauge
from seatrial.sandboxes.host.container_defaults import DEFAULT_PATH
from seatrial.sandboxes.host.layer_suspicion import find_suspicions as find_in_layers
from seatrial.sandboxes.host.private_mounts import PrivateMounts
from seatrial.sandboxes.host.storage import StorageLimit
from seatrial.sandboxes.host.strain import Strain
from seatrial.sandboxes.host.transfer import Transfer
from seatrial.sandboxes.host.view import Files, SandboxView
from seatrial.sandboxes.output import Ended, Listener

_KILLED = 137
_CANNOT_RUN = (126, 127)
_RUNTIME = ("OCI runtime exec failed", "unable to find user")
_NO_SHELL = ('exec: "bash"', "can't execute 'bash'", "container breakout")


class SandboxContainer:
    """One container, its sidecar and its storage limit."""

    def __init__(
        self, engine: EngineClient, plan: ContainerPlan, network: EngineNetwork, mounts: PrivateMounts | None
    ) -> None:
        """``mounts`` are given where the engine's containers run on this machine and may be entered."""
        self.container = Container(engine, plan, mounts)
        self.network = network
        self.storage: StorageLimit | None = None
        self.gauge: Gauge | None = None
        self.memory_killed = False
        self.strain = Strain()
        self.suspicions: tuple[str, ...] = ()
        self._engine = engine
        self._mounts = mounts
        self._sidecar: Sidecar | None = None
        self._grading = False
        self._left_running = False

    async def start(self, open_dirs: Sequence[str], profiles_dir: Path) -> None:
        """``open_dirs`` are directories that every user may write to."""
        info, added = await asyncio.gather(self._engine.get("/info"), self.network.host_config())
        profiles = Profiles(info, profiles_dir if self._mounts is not None else None)
        await self.container.create(added, info, profiles)
        await self.container.start(open_dirs)
        await self.network.connect(self.container)
        limit_mb = self.container.plan.storage_mb
        self.storage = StorageLimit(limit_mb, lambda: self._the_sidecar().kill_all(), self.container.remove)
        self.gauge = self._make_gauge()
        self.gauge.begin(limit_mb << 20, self.storage.exceeded)

    async def remove(self) -> None:
        """Removes everything except the network."""
        if self.gauge is not None:
            await self.gauge.end()
        if self.storage is not None:
            await self.storage.settled()
        await self._note_memory_kill()
        removals = [part.remove() for part in (self._sidecar, self.container) if part is not None]
        for failure in await asyncio.gather(*removals, return_exceptions=True):
            if failure is not None:
                raise failure

    def running(self) -> Container:
        """The container. ``SandboxFault`` if it is not running."""
        if self.storage is not None and self.storage.removed_because:
            raise SandboxFault(self.storage.removed_because)
        if not self.container.started:
            raise SandboxFault("The sandbox has not been started.")
        return self.container

    async def run(self, call: Call, listener: Listener | None) -> Ended:
        """Runs a command in the current view."""
        container, user = self.running(), "" if call.user is None else str(call.user)
        if not self._grading:
            order = Order(["bash", "-c", call.command], {**call.env, MARK: call.mark}, call.cwd, user)
            return await EngineCommands(self._engine, container.name).run(order, listener)
        plan, image = container.plan, container.plan.image.config
        view, wanted = self.view, user or plan.service.user or image.user
        if view is not None:
            account = await view.start(Transfer.account, wanted)
        else:
            account = await find_account(self._engine, container.name, wanted)
        # The image's own variables, not the container's: Podman adds root's HOME there.
        env = {"HOME": account.home, **image.env, **plan.env, **call.env}
        return await self._the_sidecar().run(
            call.command, env, call.cwd or plan.workdir or image.workdir, account, call.mark, listener
        )

    async def end(self, mark: str) -> None:
        """Ends a command and what belongs to it."""
        local = self.running().local
        if local is not None and self._mounts is not None:
            await self._mounts.carry(local.kill_command, f"{MARK}={mark}")
        else:
            await self._the_sidecar().kill(mark)

    async def judged(self, ended: Ended) -> Ended:
        """A command that fails is a result. A sandbox in which no command can run any more is a fault."""
        container = self.running()
        if ended.return_code == _KILLED:
            await self._note_memory_kill()
        if ended.return_code in _CANNOT_RUN:
            said = ended.stderr or ended.stdout
            if any(text in said for text in _NO_SHELL):
                raise SandboxFault(f"The sandbox is broken: its shell does not start ({said.strip()[:300]}).")
            if said.startswith(_RUNTIME):
                return Ended(ended.return_code, stdout="", stderr=said)
            if lost := await find_losses(self._engine, container.name):
                raise SandboxFault(f"The sandbox is broken: {', '.join(lost)} cannot be run any more.")
        return ended

    async def begin_grading(self) -> None:
        container = self.running()
        self._left_running = container.local is None or container.local.has_commands(container.id)
        await self._note_suspicions(container)
        await self._the_sidecar().begin_grading()
        self._grading = True

    async def look_again(self) -> None:
        """Searches again after the tests, unless only the tests could have changed something."""
        if self._left_running:
            await self._note_suspicions(self.running())

    async def _note_suspicions(self, container: Container) -> None:
        found = await self._find_suspicions(container)
        self.suspicions = tuple(sorted({*self.suspicions, *found}))

    async def end_grading(self) -> None:
        await self._the_sidecar().remove()
        self._grading = False

    @property
    def view(self) -> SandboxView | None:
        """The current view, if it can be entered without the engine."""
        local = self.running().local
        if local is None or not local.alive:
            return None
        return self._the_sidecar().view if self._grading else local.view

    @property
    def files(self) -> Files:
        if (view := self.view) is not None:
            return view
        return GradingFiles(self._the_sidecar()) if self._grading else AgentFiles(self._engine, self.running().name)

    async def commit(self) -> str:
        """Makes an image of the container as it is now, without its volumes. Returns the image's id."""
        name = self.running().name
        made = await self._engine.post("/commit", {}, container=name, pause=True, comment="an agent's layer")
        return str(made["Id"])

    async def lend(self, directory: Path, place: str) -> bool:
        """Mounts a directory of this machine read-only. The verifier's view is a copy of the agent's, so it is there
        as well. Not in a privileged sandbox, which could make the mount writable, nor with an engine elsewhere."""
        local = self.running().local
        if local is None or self._mounts is None or self._grading or self.container.plan.service.privileged:
            return False
        try:
            await self._mounts.start(local.view.lend, directory, place)
        except OSError:
            return False
        return True

    def _the_sidecar(self) -> Sidecar:
        if self._sidecar is None:
            self._sidecar = Sidecar(self._engine, self.running())
        return self._sidecar

    def _make_gauge(self) -> Gauge:
        container = self.container
        if container.layers is not None and (local := container.local) is not None:
            return LayersGauge(container.layers, container.name, local.processes)
        return EngineGauge(self._engine, container.name)

    async def _find_suspicions(self, container: Container) -> tuple[str, ...]:
        search_path = container.plan.image.config.env.get("PATH", DEFAULT_PATH)
        if (layers := container.layers) is not None and (mounts := self._mounts) is not None:
            return await mounts.carry(find_in_layers, layers.changes, layers.image, search_path)
        return await find_in_engine(self._engine, container, search_path)

    async def _note_memory_kill(self) -> None:
        if self.container.started and self.container.local is not None:
            self.strain = self.container.local.strain
        if self.container.started and not self.memory_killed:
            self.memory_killed = await self.container.memory_kills() > 0
