"""The installation of an agent without a kit, done once for each image and kept as a layer.

Harbor's own class installs the agent into a sandbox that is there for nothing else: it has the image and the settings
of the task (variables, workdir, network), but no files of the task and no key, and no agent runs in it. Only sandboxes
with the same image and settings get the layer, so no task can prepare one for another task. What the installation wrote
is kept, as a layer of the daemonless sandbox's overlay or as an image of the container engine, and later sandboxes
start with it. The runner sets ``Layered.add_layer`` at the sandbox, which is called when the image is known.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seatrial.agents.kits.kit import digest_of, size_of
from seatrial.agents.kits.shelf import IDLE_SEC
from seatrial.domain.frozen import Frozen
from seatrial.errors import SandboxFault, SeatrialError
from seatrial.sandboxes.images.image import Image
from seatrial.sandboxes.images.locks import UseRecords
from seatrial.sandboxes.images.single_flight import SingleFlight
from seatrial.sandboxes.kept_state import SavedLayer
from seatrial.sandboxes.sandbox import Sandbox
from seatrial.system.file_locks import file_lock
from seatrial.system.removal import remove_tree

_log = logging.getLogger(__name__)
_FAILURE_FOR_SEC = 300.0
DOCKER = "docker"

RemoveImage = Callable[[str], Awaitable[None]]


class Layer(Frozen):
    """A kept installation."""

    name: str
    """Of its folder."""
    agent: str
    version: str
    sandbox: str
    """``oci`` or ``docker``."""
    image: str
    """Digest of the image below."""
    kept: str
    """By which name the sandbox finds it."""
    digest: str
    size_bytes: int
    made_at: datetime


@dataclass(slots=True)
class Layered:
    """One try's agent, whose installation comes from a layer."""

    layers: AgentLayers
    agent: Any
    sandbox: Sandbox
    facts: str
    """Everything that the installation depends on, beside the image."""
    name: str
    user: str | int | None = None
    """Of the agent; ``None`` for the image's."""
    limit_sec: float | None = None
    """For the installation."""
    layer: Layer | None = None
    notes: list[str] = field(default_factory=list)

    async def add_layer(self, image: Image) -> Image:
        """The image with the layer; the plain image if no layer can be made, and then the agent installs itself as
        usual."""
        if not self.sandbox.can_save_layers or self.sandbox.has_own_process:
            return image
        own = self.agent.install
        try:
            self.layer = layer = await self.layers.get(self, image, own)
        except (SeatrialError, OSError, RuntimeError) as problem:
            said = " ".join(str(problem).split())[:300]
            self.notes.append(f"agent layer: {said}")
            return image
        if layer is None:
            return image
        self.sandbox.holds(self.layers.hold(layer))
        layered_image = await self.sandbox.with_layer(image, layer.kept)
        if layered_image is None:  # it was pruned a moment ago
            self.layer = None
            return image

        async def install(environment: Any) -> None:
            self.agent._version = self.agent._version or layer.version or None

        self.agent.install = install
        return layered_image


class AgentLayers:
    """One per worker. ``directory`` is shared with other processes of this machine."""

    def __init__(self, directory: Path, limit_bytes: int = 0, remove_image: RemoveImage | None = None) -> None:
        """``limit_bytes``: all layers together; 0 is no limit. ``remove_image`` removes one that an engine keeps."""
        self._directory = directory / "layers"
        self._limit = limit_bytes
        self._remove_image = remove_image
        self._uses = UseRecords(directory / "uses")
        self._flights: SingleFlight[Layer] = SingleFlight()
        self._failed: dict[str, float] = {}

    async def get(self, wanted: Layered, image: Image, install: Callable[[Any], Awaitable[None]]) -> Layer | None:
        """The layer, made if it is not there; ``None`` if making it failed a moment ago."""
        sandbox = wanted.sandbox
        facts = [str(sandbox.type()), image.digest, sandbox.own_settings, wanted.name, wanted.user, wanted.facts]
        key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]
        if time.monotonic() - self._failed.get(key, -_FAILURE_FOR_SEC) < _FAILURE_FOR_SEC:
            return None
        return await self._flights.join(key, lambda log: self._found_or_made(key, wanted, image, install))

    def kept(self) -> list[tuple[Path, Layer]]:
        """Layers with their folders."""
        found = [(path.parent, _read(path)) for path in self._directory.glob("*/layer.json")]
        return [(folder, layer) for folder, layer in found if layer is not None]

    async def prune(self, *, everything: bool = False, dry_run: bool = False) -> list[Layer]:
        """Removes the least recently used layers until the rest fits the limit; with ``everything``, all that no
        sandbox uses. Returns what was removed."""
        layers = sorted(self.kept(), key=lambda entry: self._uses.last_used(f"layer-{entry[0].name}"))
        total = sum(layer.size_bytes for _, layer in layers)
        removed: list[Layer] = []
        for folder, layer in layers:
            if not everything and (not self._limit or total <= self._limit):
                break
            with self._uses.removing(f"layer-{folder.name}", 0.0 if everything else IDLE_SEC) as free:
                if free and not dry_run:
                    await self._remove(folder, layer)
            if free:
                total -= layer.size_bytes
                removed.append(layer)
        return removed

    async def _remove(self, folder: Path, layer: Layer) -> None:
        if layer.sandbox == DOCKER and self._remove_image is not None:
            try:
                await self._remove_image(layer.kept)
            except SeatrialError as problem:  # the engine is away, or has removed it already
                _log.info("The engine did not remove the layer of %s: %s", layer.agent, problem)
        await asyncio.to_thread(remove_tree, folder)
        self._uses.forget(f"layer-{folder.name}")

    def hold(self, layer: Layer) -> AbstractContextManager[None]:
        """Keeps a layer from being pruned."""
        return self._uses.hold(f"layer-{layer.name}")

    async def _found_or_made(
        self, key: str, wanted: Layered, image: Image, install: Callable[[Any], Awaitable[None]]
    ) -> Layer:
        folder = self._directory / key
        async with file_lock(self._directory / "locks" / key):
            self._uses.note(f"layer-{key}")
            layer = _read(folder / "layer.json")
            if layer is not None and await wanted.sandbox.with_layer(image, layer.kept) is not None:
                return layer
            try:
                return await self._make(key, wanted, image, install)
            except BaseException:
                self._failed[key] = time.monotonic()
                raise

    async def _make(self, key: str, wanted: Layered, image: Image, install: Callable[[Any], Awaitable[None]]) -> Layer:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for stale in self._directory.glob(f".making-{key}-*"):
            await asyncio.to_thread(remove_tree, stale)
        scratch = Path(tempfile.mkdtemp(dir=self._directory, prefix=f".making-{key}-"))
        sandbox = wanted.sandbox.sibling(scratch / "trial")
        target = scratch / key
        target.mkdir()
        try:
            await sandbox.start(force_build=False)
            if sandbox.facts.image_digest != image.digest:
                raise SandboxFault("The task's image was rebuilt meanwhile.")
            with sandbox.with_default_user(wanted.user):
                async with asyncio.timeout(wanted.limit_sec):
                    await sandbox.exec("mkdir -p /installed-agent", user="root")
                    await install(sandbox)
                version = wanted.agent._version or await _version(wanted.agent, sandbox)
            kept = await sandbox.save_layer(target, image)
            layer = await asyncio.to_thread(_described, target, wanted, image, version, kept)
            remove_tree(self._directory / key)
            target.rename(self._directory / key)
            await self.prune()
            return layer
        finally:
            await sandbox.stop(delete=True)
            await asyncio.to_thread(remove_tree, scratch)


def _described(target: Path, wanted: Layered, image: Image, version: str, kept: SavedLayer) -> Layer:
    tree = target / "layer"
    layer = Layer(
        name=target.name,
        agent=wanted.name,
        version=version,
        sandbox=wanted.sandbox.type(),
        image=image.digest,
        kept=kept.name,
        digest=digest_of(tree) if tree.is_dir() else kept.name,
        size_bytes=size_of(tree) if tree.is_dir() else kept.size_bytes,
        made_at=datetime.now(UTC),
    )
    (target / "layer.json").write_text(json.dumps(layer.model_dump(mode="json"), indent=2) + "\n")
    return layer


async def _version(agent: Any, sandbox: Sandbox) -> str:
    command = agent.get_version_command()
    if not command:
        return ""
    told = await sandbox.exec(command)
    return str(agent.parse_version(told.stdout)) if told.return_code == 0 and told.stdout else ""


def _read(path: Path) -> Layer | None:
    try:
        return Layer.model_validate_json(path.read_text())
    except (OSError, ValueError):
        return None
