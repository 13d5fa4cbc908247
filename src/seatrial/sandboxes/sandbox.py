"""What both sandboxes share: options, owner, lifecycle, file transfers, facts for the lock, and when grading begins.

``oci.OciEnvironment`` and ``docker.DockerEnvironment`` implement the rest. Both are Harbor environments: the runner
uses them through ``Trial``, and so can the stock ``harbor`` CLI. They know no jobs, no store and no settings files.

Grading. Harbor uploads the tests to ``/tests`` when the agent is done, runs them through ``exec`` and reads
``/logs/verifier``. From that upload on, commands run in the verifier's own mount namespace, where alone ``/tests`` and
a fresh ``/logs/verifier`` exist. It ends when Harbor empties ``/tests``, between the steps of a multi-step task. So the
isolation also works under the stock CLI, which has no hooks of Seatrial.
"""

from __future__ import annotations

import asyncio
import json
import posixpath
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, Literal, override

from harbor.environments.base import BaseEnvironment, EnvironmentPath, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.models.task.config import NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from seatrial.errors import SandboxFault
from seatrial.sandboxes.call import Call, script_to_allow
from seatrial.sandboxes.definition import Definition
from seatrial.sandboxes.facts import SandboxFacts
from seatrial.sandboxes.host.notice_board import NoticeBoards
from seatrial.sandboxes.host.transfer import Transfer, TransferLimits
from seatrial.sandboxes.host.view import Files, SandboxView
from seatrial.sandboxes.images.image import Image, ImageProvider, LogSink
from seatrial.sandboxes.kept_state import FinalDisk, SavedLayer
from seatrial.sandboxes.network.network import Network
from seatrial.sandboxes.options import Owner, SandboxOptions
from seatrial.sandboxes.output import Ended
from seatrial.sandboxes.own_processes import TerminalWatch
from seatrial.sandboxes.own_values import own_values
from seatrial.sandboxes.posted_files import PostedFiles
from seatrial.sandboxes.terminal.terminal import Terminal
from seatrial.sandboxes.transfer_rules import host_target, own_faults
from seatrial.settings import Settings
from seatrial.system.growing_files import FileView

TESTS_DIR = PurePosixPath("/tests")
VERIFIER_DIR = PurePosixPath("/logs/verifier")
AGENT_DIR = PurePosixPath("/logs/agent")
_ROOT = ("", "root", "0")
_REWARDS = ("reward.json", "reward.txt")

SandboxPhase = Literal["build", "start"]
PhaseListener = Callable[[SandboxPhase], Awaitable[None]]
AddLayer = Callable[[Image], Awaitable[Image]]
"""Gives the image that a sandbox starts from, for the one that its task names."""


class Sandbox(BaseEnvironment):
    """A Harbor environment with an owner, facts and isolated grading."""

    _persistent_env: dict[str, str]
    _network_policy: NetworkPolicy
    _definition: Definition

    def __init__(
        self,
        *args: Any,
        options: dict[str, Any] | None = None,
        owner: dict[str, Any] | None = None,
        images: ImageProvider | None = None,
        **kwargs: Any,
    ) -> None:
        self.options = SandboxOptions(**options) if options else SandboxOptions.of(Settings())
        self.owner = Owner(**(owner or {}))
        self.on_phase: PhaseListener | None = None
        """Set by the runner; called when the build and the start begin."""
        self.on_build_output: LogSink | None = None
        """Set by the runner; gets the output of an image build."""
        self.add_layer: AddLayer | None = None
        """Set by the runner: adds the layer of an agent that was installed before."""
        self._made_with = {"options": options, "owner": owner, "images": images, **kwargs}
        self.grading = False
        self.final_state: FinalDisk | None = None
        """Set by the runner before the start: what another sandbox of this trial kept with ``save_state``."""
        self.transfer_limits = TransferLimits(
            files=self.options.max_kept_files,
            bytes=self.options.max_kept_mb << 20,
            depth=self.options.max_kept_depth,
        )
        """For one download."""
        self._terminal = Terminal(self.options.cache)
        self._typing = TerminalWatch()
        self._given_images = images
        self._image: Image | None = None
        self._network: Network | None = None
        self._starting: asyncio.Future[None] | None = None
        self._held = ExitStack()
        """Released when the sandbox stops."""
        self._posted = PostedFiles(self)
        super().__init__(*args, **kwargs)

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(
            disable_internet=True,
            network_allowlist=True,
            network_allowlist_hostnames=True,
            network_allowlist_wildcard_hostnames=True,
            network_allowlist_ipv4_addresses=True,
            network_allowlist_ipv4_cidrs=True,
            dynamic_network_policy=True,
            mounted=False,
        )

    @classmethod
    @override
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True)

    @override
    def _validate_definition(self) -> None:
        name, folder = self.environment_name, self.environment_dir
        self._definition = Definition.read(name, folder, self.task_env_config, self.options)

    @property
    def facts(self) -> SandboxFacts:
        """What has been applied so far; read when the trial is over, or when it failed to start."""
        image = self._image
        if image is None:
            return self._applied
        digest = image.below or image.digest
        named = {"image": image.reference, "image_digest": digest, "image_source": image.provenance}
        return self._applied.model_copy(update=named)

    @property
    @abstractmethod
    def _applied(self) -> SandboxFacts:
        """What was applied, without the image. Claims nothing before the sandbox runs."""

    @property
    def network_namespace(self) -> Path | None:
        """The network namespace, for a door of the gate inside; ``None`` if it is this machine's own. ``SetupProblem``
        where it cannot be entered."""
        return self._network.netns_path if self._network is not None else None

    async def look(self, seen: Mapping[str, int], wanted: Callable[[str], bool]) -> Sequence[FileView] | None:
        """Implements ``ports.runner.Window``: reads what is being written below ``/logs`` right now, without any
        program of the image. ``None`` if this sandbox cannot; its files are seen once they are downloaded."""
        try:
            view = self._view
            return await view.carry(Transfer.look, self._watched, seen, wanted) if view is not None else None
        except (OSError, SandboxFault):  # not started yet, or already removed
            return None

    @property
    def _watched(self) -> dict[str, str]:
        """Directories by the prefix that their files have in the trial's own."""
        return {"agent/": str(AGENT_DIR)} | ({"verifier/": str(VERIFIER_DIR)} if self.grading else {})

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        as_root = not (cwd or env or timeout_sec) and str(self._user(user)) in _ROOT
        if (known := await self._terminal.offer(self, command, as_root=as_root)) is not None:
            return known
        if (script := script_to_allow(command)) and await self._allow(script, user):
            return ExecResult(stdout="", stderr="", return_code=0)
        try:
            ended = await self._run(
                Call(command, self._merge_env(env) or {}, cwd, self._resolve_user(user)), timeout_sec
            )
        except TimeoutError:
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds") from None
        if not self.grading:
            self._typing.judge(command, ended.return_code, f"{ended.stdout}{ended.stderr}")
        return ExecResult(stdout=ended.stdout, stderr=ended.stderr, return_code=ended.return_code)

    @abstractmethod
    async def _run(self, call: Call, timeout_sec: int | None) -> Ended:
        """Runs a command in the current view. ``TimeoutError`` when the time is up; the command is then gone."""

    async def _allow(self, script: str, user: str | int | None) -> bool:
        """``chmod +x`` without a process; ``False`` where a command has to do it."""
        view = self._view_as_root(user)
        return view is not None and await view.start(Transfer.make_executable, script)

    @override
    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        if (view := self._view_as_root(user)) is None:
            return bool(await super().is_dir(path, user))
        return await view.start(Transfer.is_dir, self._absolute(path))

    @override
    async def is_file(self, path: str, user: str | int | None = None) -> bool:
        if (view := self._view_as_root(user)) is None:
            return bool(await super().is_file(path, user))
        return await view.start(Transfer.is_file, self._absolute(path))

    def _view_as_root(self, user: str | int | None) -> SandboxView | None:
        """The current view if this user may do everything: then no command is needed to look at a file."""
        return self._view if str(self._user(user)) in _ROOT else None

    def _user(self, user: str | int | None) -> str | int:
        wanted = self._resolve_user(user)
        return self._definition.user(self._started_image) if wanted is None else wanted

    @property
    def _started_image(self) -> Image:
        if self._image is None:
            raise SandboxFault("The sandbox has not been started.")
        return self._image

    async def save_state(self, target: Path) -> str:
        """Copies what the agent left, so that another sandbox can begin with it (``final_state``). Returns why that is
        not possible, such as processes that grading may need; empty if it was done."""
        return f"the sandbox {self.type()} cannot keep it"

    def holds(self, something: AbstractContextManager[None]) -> None:
        """Enters a context that ends when the sandbox has stopped."""
        self._held.enter_context(something)

    def sibling(self, directory: Path) -> Sandbox:
        """Another sandbox of the same image and settings, with a trial's directory of its own and without the files
        that the task adds to its image. It has not been started."""
        paths = TrialPaths(trial_dir=directory)
        paths.mkdir()
        given = {**self._made_with, "session_id": f"{directory.name}__env", "trial_paths": paths}
        return type(self)(**given, enable_environment_dir_upload=False)

    @property
    def own_settings(self) -> str:
        """What the task sets beside its image. A layer that was made with other settings is not for this sandbox."""
        policy = self._definition.network(self._network_policy, self.options)
        return json.dumps(
            {
                "env": self._startup_env(),
                "workdir": self._definition.own_workdir,
                "service": self._definition.service.model_dump(mode="json"),
                "network": policy and policy.model_dump(mode="json"),
            },
            sort_keys=True,
        )

    @property
    def can_save_layers(self) -> bool:
        """Whether ``save_layer`` works."""
        return False

    async def save_layer(self, target: Path, below: Image) -> SavedLayer:
        """Keeps what was written to this sandbox since its start as a layer over the image ``below``, and ends its
        commands. ``SandboxFault`` if that is not possible."""
        raise SandboxFault(f"The sandbox {self.type()} cannot keep a layer.")

    async def with_layer(self, image: Image, name: str) -> Image | None:
        """The image with a layer that was kept for it; ``None`` if the layer is gone."""
        return None

    @property
    def has_own_process(self) -> bool:
        """Whether the task's image or compose file starts a process. What that writes belongs to one sandbox."""
        service, config = self._definition.service, self._started_image.config
        return bool(service.command or service.entrypoint or (service.entrypoint is None and config.entrypoint))

    @abstractmethod
    async def begin_grading(self) -> None:
        """From now on ``exec`` and transfers use the view with ``/tests`` and a fresh ``/logs/verifier``."""

    @abstractmethod
    async def end_grading(self) -> None:
        """Returns to the agent's view, without the mounts of grading."""

    @abstractmethod
    async def look_again(self) -> None:
        """Searches again for suspicious changes after the tests, if processes of the agent were still running.
        Otherwise only the tests themselves can have changed something."""

    @property
    @abstractmethod
    def files(self) -> Files:
        """Copies files in the current view."""

    @property
    def _view(self) -> SandboxView | None:
        """The current view, where it can be entered without a container engine."""
        files = self.files
        return files if isinstance(files, SandboxView) else None

    def _absolute(self, path: str) -> str:
        """Relative paths start in the working directory of commands."""
        return str(Path("/", self._definition.workdir(self._started_image), path)) + "/" * path.endswith("/")

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        if not self._is_in_verifiers(target_path):
            with own_faults(Path(source_path), target_path):
                await self.files.put_file(Path(source_path), self._absolute(target_path))

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        if self._is_in_verifiers(target_dir):
            return
        if not self.grading and PurePosixPath(target_dir) == TESTS_DIR:
            await self.begin_grading()
        with own_faults(Path(source_dir), target_dir):
            await self.files.put_tree(Path(source_dir), self._absolute(target_dir))
        if VERIFIER_DIR.is_relative_to(self._normal(target_dir)):
            await super().empty_dirs([VERIFIER_DIR])

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        target = host_target(target_path, self.trial_paths.trial_dir)
        await self.files.get_file(self._absolute(source_path), target, self.transfer_limits)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        is_verifiers = self._normal(source_dir) == VERIFIER_DIR
        if self.grading and is_verifiers:
            await self.look_again()
        first = _REWARDS if is_verifiers else ()
        source, target = self._absolute(source_dir), host_target(target_dir, self.trial_paths.trial_dir)
        left_out = await self.files.get_tree(source, target, self.transfer_limits, first)
        for line in left_out.lines():
            self.logger.warning("Not downloaded from %s: %s", source_dir, line)

    def _is_in_verifiers(self, target: str) -> bool:
        """Only the verifier writes there. An artifact of the agent with such a path is left out."""
        inside = self._normal(target).is_relative_to(VERIFIER_DIR)
        if inside:
            self.logger.warning("Not uploaded to %s: only the verifier writes there", target)
        return inside

    def _normal(self, path: str) -> PurePosixPath:
        return PurePosixPath(posixpath.normpath(self._absolute(path)))

    async def lend(self, directory: Path, place: str) -> bool:
        """Shows the sandbox a directory of this machine, read-only, instead of a copy of it. Returns whether this
        sandbox can."""
        return False

    async def post(self, path: str, content: bytes) -> None:
        """Shows the sandbox a small file, which may be written again. Where the sandbox can borrow it (``lend``), its
        processes cannot change it; elsewhere it is a copy that root can."""
        await self._posted.write(path, content)

    @property
    def notices(self) -> NoticeBoards | None:
        """Where this sandbox borrows files; ``None`` if it is not on this machine."""
        return None

    @override
    async def empty_dirs(self, dirs: Sequence[EnvironmentPath], *, chmod: bool = True) -> ExecResult | None:
        if self.grading and any(PurePosixPath(str(path)) == TESTS_DIR for path in dirs):
            await self.end_grading()
        return await super().empty_dirs(dirs, chmod=chmod)

    @override
    def _maybe_resolve_task_env(self) -> None:
        """Harbor fills ``${NAME}`` in a task's environment from the worker's own, secrets included. A task gets the
        default that it names, and is refused where it names none."""
        self._persistent_env = {**own_values(self.task_env_config.env), **self._persistent_env}

    @override
    def _startup_env(self) -> dict[str, str]:
        return dict(self._persistent_env)

    def _wanted_network(self) -> NetworkPolicy | None:
        policy = self._definition.network(self._network_policy, self.options)
        self._network_policy = policy or self._network_policy
        return policy

    @override
    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        if self._network is not None:
            await self._network.apply(network_policy)

    @override
    async def start(self, force_build: bool) -> None:
        await self._enter("build")
        images = self._given_images or self._shared_images()
        request = self._definition.image_request(force_build=force_build)
        self._image = image = await images.resolve(request, self.on_build_output)
        if self.final_state is not None and self.final_state.image_digest != image.digest:
            raise SandboxFault("The final state belongs to another build of the task's image, so it cannot be graded.")
        self._held.enter_context(images.hold(image))
        if self.add_layer is not None and self.final_state is None:
            self._image = image = await self.add_layer(image)
        await self._enter("start")
        await self._start(image)
        if self.final_state is not None:
            return
        await self._upload_environment_dir_after_start()

    @override
    async def stop(self, delete: bool) -> None:
        """Removes everything, also without ``delete``: a sandbox that stays could not be used again."""
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
        try:
            await self._remove()
            await self._posted.remove()
        finally:
            if self._network is not None:
                await self._network.release()
            self._held.close()

    async def _finish_even_if_cancelled(self, starting: Awaitable[None]) -> None:
        """``stop`` waits for the end of ``starting`` before it removes the sandbox."""
        self._starting = asyncio.ensure_future(starting)
        await asyncio.shield(self._starting)

    @abstractmethod
    def _shared_images(self) -> ImageProvider: ...

    @abstractmethod
    async def _start(self, image: Image) -> None:
        """Connects and starts the sandbox."""

    @abstractmethod
    async def _remove(self) -> None:
        """Removes everything except the network, also after a start that failed."""

    async def _enter(self, phase: SandboxPhase) -> None:
        if self.on_phase is not None:
            await self.on_phase(phase)
