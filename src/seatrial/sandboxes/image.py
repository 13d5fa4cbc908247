"""The one resolver's vocabulary: what an image is, what is asked for, and what an image store can do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

from seatrial.domain.frozen import Frozen

ImageSource = Literal["local", "pulled", "built", "bootstrapped", "forced build"]
LogSink = Callable[[str], None]
"""Takes pieces of a build's output as they come."""


class ImageConfig(Frozen):
    """What an image says about the processes that run in it."""

    env: dict[str, str] = {}
    workdir: str = "/"
    user: str = ""
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()


class ImageRequest(Frozen):
    """Which image a task's environment needs."""

    task_name: str
    environment_dir: Path
    docker_image: str | None = None
    force_build: bool = False
    build_timeout_sec: float = 600.0


class Image(Frozen):
    """An image that is here and ready."""

    reference: str
    digest: str
    source: ImageSource
    config: ImageConfig = ImageConfig()
    layers: tuple[Path, ...] = ()
    """``oci`` only: read-only directories, topmost first, to be the ``lowerdir`` of an overlay."""
    build_log: Path | None = None


class ImageProvider(Protocol):
    """Where a sandbox gets its image from. Faults are ``ImageFault`` with the image's name and what would help."""

    async def resolve(self, request: ImageRequest, log: LogSink | None = None) -> Image:
        """The image, by the order of the contract; built at most once however many ask at the same time."""
        ...
