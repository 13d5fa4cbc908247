"""Removes the least recently used images, but none that a sandbox uses or that was used a moment ago."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.errors import ImageFault
from seatrial.sandboxes.images.image import ImageStore, StoredImage
from seatrial.sandboxes.images.locks import UseRecords
from seatrial.system.removal import remove_tree

IDLE_SEC = 600.0
"""An image used within this time is kept, because a sandbox may be starting with it."""
_SCRAP_SEC = 86_400.0


class PruneReport(Frozen):
    removed: tuple[StoredImage, ...] = ()
    kept_in_use: tuple[StoredImage, ...] = ()
    free_bytes: int = 0


class Pruner:
    def __init__(
        self,
        store: ImageStore,
        uses: UseRecords,
        folder: Path,
        low_water_bytes: int,
        *,
        free: Callable[[Path], int] | None = None,
        idle_sec: float = IDLE_SEC,
    ) -> None:
        self._store = store
        self._uses = uses
        self._folder = folder
        self._low_water = low_water_bytes
        self._free = free or _free_bytes
        self._idle_sec = idle_sec

    async def make_room(self) -> PruneReport | None:
        """Prunes if the disk is below its low-water mark. Called before a build."""
        return await self.prune() if self._free(self._folder) < self._low_water else None

    async def prune(self, *, everything: bool = False, dry_run: bool = False) -> PruneReport:
        """Removes unnamed images, then the least recently used ones up to the low-water mark (or all of them)."""
        removed: list[StoredImage] = []
        kept: list[StoredImage] = []
        if not dry_run:
            await asyncio.to_thread(self._remove_scraps, everything)
        for image in sorted(await self._store.list(), key=self._age):
            if image.references and not everything and self._enough(removed, dry_run):
                continue
            (removed if await self._remove(image, everything, dry_run) else kept).append(image)
        return PruneReport(removed=tuple(removed), kept_in_use=tuple(kept), free_bytes=self._free(self._folder))

    def _enough(self, removed: list[StoredImage], dry_run: bool) -> bool:
        would_free = sum(image.size_bytes for image in removed) if dry_run else 0
        return self._free(self._folder) + would_free >= self._low_water

    def _age(self, image: StoredImage) -> tuple[bool, float]:
        created = image.created_at.timestamp() if image.created_at else 0.0
        return bool(image.references), self._uses.last_used(image.digest) or created

    async def _remove(self, image: StoredImage, everything: bool, dry_run: bool) -> bool:
        # ``--all`` also removes images used a minute ago, but none in use.
        with self._uses.removing(image.digest, 0.0 if everything else self._idle_sec) as free:
            if not free or dry_run:
                return free
            try:
                await self._store.remove(image.digest)
            except ImageFault:
                return False
            self._uses.forget(image.digest)
            return True

    def _remove_scraps(self, everything: bool) -> None:
        """Removes contexts of killed builders, and with ``everything`` also the archives of bases."""
        for path in (self._folder / "staging").glob("*"):
            if time.time() - path.stat().st_mtime > _SCRAP_SEC:
                remove_tree(path)
        if everything:
            for path in (self._folder / "bases").glob("*.tar"):
                path.unlink(missing_ok=True)


def _free_bytes(folder: Path) -> int:
    place = folder
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free
