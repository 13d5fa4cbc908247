"""Reads the files in which buildah keeps images. Starts no process, so that a trial finds its image in microseconds.

The layout (``<driver>-images/images.json``, ``<driver>-layers/layers.json``) is containers/storage's; its files are
replaced as a whole on every change, so their stamp tells whether what was read still holds.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from seatrial.sandboxes.images.image import ImageConfig

_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
OPTIONS_LIMIT = 3000
"""Bytes that all layer paths may have together: a mount's options fit one page, and the sandbox needs some of it."""


@dataclass(frozen=True, slots=True)
class ImageRecord:
    id: str
    manifest_digest: str
    names: tuple[str, ...]
    layer: str
    created_at: datetime | None


class StampedFile[T]:
    """What a file means, read anew only after it was replaced."""

    def __init__(self, path: Path, read: Callable[[list[dict[str, Any]]], T]) -> None:
        self._path = path
        self._read = read
        self._stamp: tuple[int, int, int] | None = None
        self._value: T = read([])

    @property
    def value(self) -> T:
        try:
            about = self._path.stat()
            stamp = (about.st_mtime_ns, about.st_size, about.st_ino)
            if stamp != self._stamp:
                text = self._path.read_text()
                self._value, self._stamp = self._read(json.loads(text) if text else []), stamp
        except FileNotFoundError:
            self._value, self._stamp = self._read([]), None
        return self._value


@dataclass(frozen=True, slots=True)
class _Images:
    by_id: dict[str, ImageRecord]
    by_name: dict[str, ImageRecord]


class StorageReader:
    def __init__(self, root: Path, driver: str, options_limit: int = OPTIONS_LIMIT) -> None:
        self._options_limit = options_limit
        self._root = root
        self._driver = driver
        self._images_dir = root / f"{driver}-images"
        self._images = StampedFile(self._images_dir / "images.json", _images)
        self._layers = StampedFile(root / f"{driver}-layers" / "layers.json", _layers)
        self._configs: dict[str, ImageConfig] = {}

    def records(self) -> tuple[ImageRecord, ...]:
        return tuple(self._images.value.by_id.values())

    def find(self, reference: str) -> ImageRecord | None:
        """By name, by ``sha256:<id>``, or by ``name@<manifest digest>``."""
        images = self._images.value
        found = images.by_name.get(reference) or images.by_id.get(reference.removeprefix("sha256:"))
        _, at, digest = reference.partition("@")
        if found is not None or not at:
            return found
        return next((record for record in images.by_id.values() if record.manifest_digest == digest), None)

    def config(self, image_id: str) -> ImageConfig:
        if image_id not in self._configs:
            path = self._images_dir / image_id / _file_name(f"sha256:{image_id}")
            self._configs[image_id] = ImageConfig.read(json.loads(path.read_text()).get("config") or {})
        return self._configs[image_id]

    def layer_chain(self, record: ImageRecord) -> tuple[str, ...]:
        """Layer ids, topmost first."""
        layers = self._layers.value
        chain, current = [], record.layer
        while current:
            chain.append(current)
            current = str(layers[current].get("parent", ""))
        return tuple(chain)

    def directories(self, record: ImageRecord) -> tuple[Path, ...] | None:
        """Lower directories of an overlay; ``None`` if there are more than a mount can name."""
        chain = self.layer_chain(record)
        if self._driver == "vfs":
            return (self._root / "vfs" / "dir" / chain[0],) if chain else ()
        found = tuple(self._root / "overlay" / layer / "diff" for layer in chain)
        if self._fits(found):
            return found
        short = tuple(self._root / "overlay" / "l" / self._link(layer) for layer in chain)
        return short if self._fits(short) else None

    def size(self, record: ImageRecord) -> int:
        layers = self._layers.value
        return sum(int(layers[layer].get("diff-size", 0)) for layer in self.layer_chain(record))

    def _fits(self, paths: tuple[Path, ...]) -> bool:
        return sum(len(str(path)) + 1 for path in paths) <= self._options_limit

    def _link(self, layer: str) -> str:
        return (self._root / "overlay" / layer / "link").read_text().strip()


def _images(items: list[dict[str, Any]]) -> _Images:
    records = [_record(item) for item in items]
    return _Images(
        by_id={record.id: record for record in records},
        by_name={name: record for record in records for name in record.names},
    )


def _layers(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {item["id"]: item for item in items}


def _record(item: dict[str, Any]) -> ImageRecord:
    created = item.get("created")
    return ImageRecord(
        id=item["id"],
        manifest_digest=item.get("digest", ""),
        names=tuple(item.get("names") or ()),
        layer=item.get("layer", ""),
        created_at=datetime.fromisoformat(created) if created else None,
    )


def _file_name(name: str) -> str:
    """containers/storage writes names with unusual characters in base 64."""
    return name if _PLAIN_NAME.fullmatch(name) else "=" + base64.b64encode(name.encode()).decode()
