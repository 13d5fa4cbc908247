"""What a sandbox keeps so that another one can begin with it: the state in which an agent left it, or a layer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FinalDisk:
    """What ``Sandbox.save_state`` copied, and from which image that sandbox had started."""

    copy: Path
    image_digest: str | None


@dataclass(frozen=True, slots=True)
class SavedLayer:
    """What was written to a sandbox since its start."""

    name: str
    """For ``with_layer``."""
    size_bytes: int = 0
    """Of what is kept outside of the folder that it was given."""
