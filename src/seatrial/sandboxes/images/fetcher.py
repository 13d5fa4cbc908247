"""Gets images from the store, from a registry, or (Debian only) from the package mirror."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.debian import DebianBootstrap
from seatrial.sandboxes.images.image import Image, ImageStore, LogSink, RegistryUnreachable
from seatrial.sandboxes.images.references import familiar, parse
from seatrial.sandboxes.images.registries import Registries
from seatrial.system.file_locks import file_lock

VERDICT_SEC = 300.0


class UnreachableRegistries:
    """The registries that did not answer in the last minutes, for all processes of a cache."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock

    def note(self, registry: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._path(registry).write_text(f"{self._clock()}")

    def knows(self, registry: str) -> bool:
        try:
            noted = float(self._path(registry).read_text())
        except (FileNotFoundError, ValueError):
            return False
        return 0 <= self._clock() - noted < VERDICT_SEC

    def _path(self, registry: str) -> Path:
        return self._folder / registry.replace("/", "_")


class Fetcher:
    """Pulls images, and makes Debian ones if no registry answers."""

    def __init__(
        self,
        store: ImageStore,
        silent: UnreachableRegistries,
        bootstrap: DebianBootstrap | None,
        locks_dir: Path,
        registries: Registries,
        *,
        may_pull: bool = True,
    ) -> None:
        self._store = store
        self._silent = silent
        self._bootstrap = bootstrap
        self._locks_dir = locks_dir
        self._registries = registries
        self._may_pull = may_pull

    async def bring(self, reference: str, log: LogSink) -> Image:
        """From the store, a registry or the package mirror. ``ImageFault`` with the command that gets it."""
        async with self._alone(reference):
            found = await self._store.find(reference)
            return found or await self._fetch(reference, log)

    async def pull(self, reference: str, log: LogSink) -> Image:
        """From the store or a registry."""
        async with self._alone(reference):
            found = await self._store.find(reference)
            return found or await self._pull(reference, log)

    async def _fetch(self, reference: str, log: LogSink) -> Image:
        name = familiar(reference)
        if not self._may_pull:
            raise ImageFault(f"The image {name} is not here and pulling is switched off.", fix=self._fix(reference))
        try:
            return await self._pull(reference, log)
        except RegistryUnreachable as silence:
            if self._bootstrap is not None and self._bootstrap.can_make(reference):
                log(f"{silence.message} {name} is a Debian base and is made from packages.\n")
                return await self._bootstrap.make(reference, self._store, log)
            raise RegistryUnreachable(
                f"The image {name} is not here and no registry answers.", fix=self._fix(reference)
            ) from silence

    async def _pull(self, reference: str, log: LogSink) -> Image:
        """Pulls, unless the registry did not answer in the last minutes."""
        registry = parse(reference).registry
        if self._silent.knows(registry):
            raise RegistryUnreachable(f"{registry} did not answer a moment ago.")
        await self._registries.check(reference)
        try:
            return await self._store.pull(reference, log, trusted=self._registries.trusts(registry))
        except RegistryUnreachable:
            self._silent.note(registry)
            raise

    def _alone(self, reference: str) -> AbstractAsyncContextManager[None]:
        """Only one trial of all processes fetches an image at a time."""
        name = hashlib.sha256(reference.encode()).hexdigest()[:32]
        return file_lock(self._locks_dir / f"{self._store.name}-{name}")

    def _fix(self, reference: str) -> str:
        if self._bootstrap is not None and self._bootstrap.can_make(reference):
            return f"Run: seatrial images bootstrap {familiar(reference)}"
        tool = "docker" if self._store.name == "docker" else "seatrial images"
        return f"Run: {tool} pull {familiar(reference)}"
