"""Brings what a Dockerfile is built on: from the store, from a registry, or (Debian only) from the package mirror."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from seatrial.errors import ImageFault
from seatrial.sandboxes.image import Image, ImageStore, LogSink, RegistrySilent
from seatrial.sandboxes.images.bootstrap import DebianBootstrap
from seatrial.sandboxes.images.references import familiar, parse

VERDICT_SEC = 300.0


class SilentRegistries:
    """Remembers for some minutes, for all processes of a cache, which registries did not answer."""

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
    """Pulls images, and makes Debian ones where pulling is impossible."""

    def __init__(
        self,
        store: ImageStore,
        silent: SilentRegistries,
        bootstrap: DebianBootstrap | None,
        *,
        may_pull: bool = True,
    ) -> None:
        self._store = store
        self._silent = silent
        self._bootstrap = bootstrap
        self._may_pull = may_pull

    async def fetch(self, reference: str, log: LogSink) -> Image:
        """An image that is not here yet. Raises ``ImageFault`` with the command that would bring it."""
        name = familiar(reference)
        if not self._may_pull:
            raise ImageFault(f"The image {name} is not here and pulling is switched off.", fix=self.command(reference))
        try:
            return await self.pull(reference, log)
        except RegistrySilent as silence:
            if self._bootstrap is not None and self._bootstrap.can_make(reference):
                log(f"{silence.message} {name} is a Debian base and will be made from packages.\n")
                return await self._bootstrap.make(reference, self._store, log)
            raise RegistrySilent(
                f"The image {name} is not here and no registry answers.", fix=self.command(reference)
            ) from silence

    async def pull(self, reference: str, log: LogSink) -> Image:
        """Asks the registry, unless it was found silent within the last minutes."""
        registry = parse(reference).registry
        if self._silent.knows(registry):
            raise RegistrySilent(f"{registry} did not answer a moment ago.")
        try:
            return await self._store.pull(reference, log)
        except RegistrySilent:
            self._silent.note(registry)
            raise

    def command(self, reference: str) -> str:
        if self._bootstrap is not None and self._bootstrap.can_make(reference):
            return f"Bring it with: seatrial images bootstrap {familiar(reference)}"
        tool = "docker" if self._store.name == "docker" else "seatrial images"
        return f"Bring it with: {tool} pull {familiar(reference)}"
