"""The one resolver's vocabulary: what an image is, what is asked for, and what an image store can do.

The resolver in ``sandboxes/images`` decides *which* image and *when* to build; an ``ImageStore`` only carries out what
it is told, with buildah for the ``oci`` sandbox and with a container engine for ``docker``. References are spoken in
full (``docker.io/library/debian:bookworm-slim``) by the time a store hears them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from seatrial.domain.frozen import Frozen
from seatrial.errors import ImageFault

ImageSource = Literal["local", "pulled", "built", "bootstrapped", "forced build"]
LogSink = Callable[[str], None]
"""Takes pieces of a build's output as they come."""

LABEL_KEY = "seatrial.key"
"""Content key of the environment that an image was built from; marks an image as ours."""
LABEL_TASK = "seatrial.task"
LABEL_BASES = "seatrial.bases"
"""JSON list of ``BaseImage``: what the image was built on."""
LABEL_BOOTSTRAPPED = "seatrial.bootstrapped"
"""Set on bases that were made from the package mirror; inherited by everything built on them."""


class RegistrySilent(ImageFault):
    """No registry answered; asking again within the next minutes is of no use."""


class ImageConfig(Frozen):
    """What an image says about the processes that run in it."""

    env: dict[str, str] = {}
    workdir: str = "/"
    user: str = ""
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    on_build: tuple[str, ...] = ()
    """Instructions that a builder would carry out in every build on this image."""

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> ImageConfig:
        """From the configuration that Docker and OCI images share."""
        return cls(
            env=dict(entry.partition("=")[::2] for entry in config.get("Env") or ()),
            workdir=config.get("WorkingDir") or "/",
            user=config.get("User") or "",
            entrypoint=tuple(config.get("Entrypoint") or ()),
            cmd=tuple(config.get("Cmd") or ()),
            labels=dict(config.get("Labels") or {}),
            on_build=tuple(config.get("OnBuild") or ()),
        )


class ImageRequest(Frozen):
    """Which image a task's environment needs."""

    task_name: str
    environment_dir: Path
    docker_image: str | None = None
    force_build: bool = False
    build_timeout_sec: float = 600.0
    build_args: dict[str, str] = {}
    """Values for the Dockerfile's ``ARG`` lines, as a compose file gives them."""
    dockerfile: str = "Dockerfile"
    """Inside ``environment_dir``."""
    target: str = ""
    """Stage to stop at; empty for the last one."""


class BaseImage(Frozen):
    """An image that another one was built on."""

    reference: str
    digest: str
    source: ImageSource


class Image(Frozen):
    """An image that is here and ready."""

    reference: str
    digest: str
    """``sha256:`` and the image's id, the digest of its configuration."""
    source: ImageSource
    config: ImageConfig = ImageConfig()
    layers: tuple[Path, ...] = ()
    """``oci`` only: read-only directories, topmost first, to be the ``lowerdir`` of an overlay."""
    build_log: Path | None = None

    @property
    def bases(self) -> tuple[BaseImage, ...]:
        """What it was built on, as its label tells; empty for images that others built."""
        label = self.config.labels.get(LABEL_BASES, "[]")
        return tuple(BaseImage(**base) for base in json.loads(label))

    @property
    def provenance(self) -> str:
        """For a trial's lock: the source, and which of its bases came from the package mirror."""
        made = [_short(base.reference) for base in self.bases if base.source == "bootstrapped"]
        return f"{self.source} (bootstrapped base: {', '.join(made)})" if made else self.source


def _short(reference: str) -> str:
    return reference.removeprefix("docker.io/library/")


class BuildPlan(Frozen):
    """A build that any builder can carry out: links, ignored files, heredocs and mounts have been dealt with."""

    reference: str
    """The name that the result gets."""
    context_dir: Path
    """A directory of this build alone, read only, without anything that ``.dockerignore`` names."""
    dockerfile: Path
    """The rewritten Dockerfile; lies outside of ``context_dir``. All of its bases are in the store."""
    labels: dict[str, str] = {}
    timeout_sec: float = 600.0
    fetches: tuple[str, ...] = ()
    """Addresses that the Dockerfile has the builder itself fetch."""


class StoredImage(Frozen):
    """One line of a store's listing."""

    digest: str
    references: tuple[str, ...] = ()
    size_bytes: int = 0
    created_at: datetime | None = None
    labels: dict[str, str] = {}


class ImageStore(Protocol):
    """Where images are kept. Faults are ``ImageFault``; cancelling a call ends what it started before it returns.

    ``Image.source`` as a store gives it says only what the store itself did: ``local``, ``pulled``, ``built`` or
    ``bootstrapped``. ``find`` is on the path of every trial and has to be quick (no process, no round trip where
    avoidable)."""

    name: str
    """``oci`` or ``docker``: keeps the use records of several stores apart."""

    async def find(self, reference: str) -> Image | None:
        """The image if it is here, by its full reference or by its digest."""
        ...

    async def pull(self, reference: str, log: LogSink, *, trusted: bool = True) -> Image:
        """Fetches it. ``RegistrySilent`` if nobody answered, another ``ImageFault`` if the registry said no.

        Only a ``trusted`` registry gets the operator's credentials and network."""
        ...

    async def build(self, plan: BuildPlan, log: LogSink) -> Image:
        """Builds without pulling anything. Past the plan's time all of the builder is killed: ``ImageFault``."""
        ...

    async def load_root(self, reference: str, archive: Path, labels: dict[str, str], log: LogSink) -> Image:
        """Makes an image with one layer from a tar file of a root file system."""
        ...

    async def tag(self, image: Image, reference: str) -> None: ...

    async def push(self, image: Image, reference: str, log: LogSink) -> None:
        """Under a name that the image was tagged with."""
        ...

    async def remove(self, digest: str) -> None:
        """Takes the image and its names away; one that a container or another image needs is an ``ImageFault``."""
        ...

    async def list(self) -> list[StoredImage]:
        """Every image here that Seatrial may manage: all of a store of our own, only labelled ones elsewhere."""
        ...


class ImageProvider(Protocol):
    """Where a sandbox gets its image from. Faults are ``ImageFault`` with the image's name and what would help."""

    async def resolve(self, request: ImageRequest, log: LogSink | None = None) -> Image:
        """The image, by the order of the contract; built at most once however many ask at the same time."""
        ...

    def hold(self, image: Image) -> AbstractContextManager[None]:
        """Keeps the image from being pruned, by any process, until the context ends or this process dies."""
        ...
