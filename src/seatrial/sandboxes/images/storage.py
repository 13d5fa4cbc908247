"""Reads the files in which buildah keeps images. Starts no process, so that a trial finds its image in microseconds.

containers/storage defines the layout (``<driver>-images/images.json``, ``<driver>-layers/layers.json``) and replaces
a file as a whole on every change.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.image import ImageConfig
from seatrial.sandboxes.parsed_file import ParsedFile

_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
OPTIONS_LIMIT = 3000
"""Bytes for all layer paths of one mount. A mount's options have to fit one page, and the sandbox needs some of it."""


@dataclass(frozen=True, slots=True)
class ImageRecord:
    id: str
    manifest_digest: str
    names: tuple[str, ...]
    layer: str
    created_at: datetime | None


class StorageReader:
    def __init__(self, root: Path, driver: str, options_limit: int = OPTIONS_LIMIT) -> None:
        self._options_limit = options_limit
        self._root = root
        self._driver = driver
        self._images_dir = root / f"{driver}-images"
        self._images = ParsedFile(self._images_dir / "images.json", _parse_images)
        self._layers = ParsedFile(root / f"{driver}-layers" / "layers.json", _parse_layers)
        self._configs: dict[str, ImageConfig] = {}

    def records(self) -> tuple[ImageRecord, ...]:
        return tuple({record.id: record for record in self._images.value.values()}.values())

    def find(self, reference: str) -> ImageRecord | None:
        """By name, by ``sha256:<id>``, or by ``name@<manifest digest>``."""
        images = self._images.value
        _, _, digest = reference.partition("@")
        return images.get(reference.removeprefix("sha256:")) or images.get(digest)

    def config(self, image_id: str) -> ImageConfig:
        if image_id not in self._configs:
            path = self._images_dir / image_id / _file_name(f"sha256:{image_id}")
            self._configs[image_id] = ImageConfig.read(json.loads(path.read_text()).get("config") or {})
        return self._configs[image_id]

    def directories(self, record: ImageRecord) -> tuple[Path, ...] | None:
        """Lower directories of an overlay. ``None`` if there are more than a mount can name."""
        chain = self._layer_chain(record)
        if self._driver == "vfs":
            return (self._root / "vfs" / "dir" / chain[0],) if chain else ()
        overlay = self._root / "overlay"
        found = tuple(overlay / layer / "diff" for layer in chain)
        if self._fits(found):
            return found
        short = tuple(overlay / "l" / (overlay / layer / "link").read_text().strip() for layer in chain)
        return short if self._fits(short) else None

    def size(self, record: ImageRecord) -> int:
        layers = self._layers.value
        return sum(int(layers[layer].get("diff-size", 0)) for layer in self._layer_chain(record))

    def _layer_chain(self, record: ImageRecord) -> list[str]:
        """Layer ids, topmost first."""
        layers = self._layers.value
        chain, current = [], record.layer
        while current:
            chain.append(current)
            current = str(layers[current].get("parent", ""))
        return chain

    def _fits(self, paths: tuple[Path, ...]) -> bool:
        return sum(len(str(path)) + 1 for path in paths) <= self._options_limit


def _parse_images(text: str) -> dict[str, ImageRecord]:
    """Images by manifest digest, by id and by name."""
    records = [_record(item) for item in json.loads(text or "[]")]
    found = {record.manifest_digest: record for record in reversed(records) if record.manifest_digest}
    for record in records:
        found.update(dict.fromkeys((record.id, *record.names), record))
    return found


def _parse_layers(text: str) -> dict[str, dict[str, Any]]:
    return {item["id"]: item for item in json.loads(text or "[]")}


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


def remove_nodes(folders: Iterable[Path]) -> int:
    """Removes device nodes from layers without opening any file, and returns how many there were.

    A character device 0:0 stays: it is an overlay's mark for a file that a layer deleted."""
    try:
        return sum(_remove_nodes_below(folder) for folder in folders)
    except OSError as error:  # a path that is too long, for example
        raise ImageFault(f"The image has folders that cannot be read: {error.strerror}.") from error


def _remove_nodes_below(folder: Path) -> int:
    removed = 0
    for parent, folders, files in os.walk(folder, onerror=_raise):
        for name in (*folders, *files):
            path = Path(parent, name)
            about = path.lstat()
            if stat.S_ISBLK(about.st_mode) or (stat.S_ISCHR(about.st_mode) and about.st_rdev != 0):
                path.unlink()
                removed += 1
    return removed


def _raise(error: OSError) -> None:
    raise error
