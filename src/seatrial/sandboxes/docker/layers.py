"""Where the files of a running container are on this machine, from the engine's own account of it.

``container`` asks where it may be entered; one of an engine that is elsewhere, or that keeps its files in another
way than as an overlay, has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Layers:
    """An overlay's directories and the container's volumes."""

    changes: Path
    image: tuple[Path, ...]
    """The topmost first."""
    volumes: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    """Of the engine's own, which the container may write to: its names and name servers."""

    @classmethod
    def found(cls, inspected: Mapping[str, Any]) -> Self | None:
        """From the engine's description of a container that runs here."""
        places = (inspected.get("GraphDriver") or {}).get("Data") or {}
        changes, image = places.get("UpperDir") or "", (places.get("LowerDir") or "").split(":")
        volumes = [entry["Source"] for entry in inspected.get("Mounts") or () if entry.get("Type") == "volume"]
        if not all(path and Path(path).is_dir() for path in (changes, *image, *volumes)):
            return None
        named = (inspected.get(name) for name in ("HostsPath", "ResolvConfPath", "HostnamePath"))
        files = [Path(path) for path in named if path]
        return cls(Path(changes), tuple(map(Path, image)), tuple(map(Path, volumes)), tuple(files))

    @property
    def written(self) -> tuple[Path, ...]:
        """Everything that the container can fill."""
        return (self.changes, *self.volumes, *self.files)
