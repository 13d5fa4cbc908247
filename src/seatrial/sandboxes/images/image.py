"""The types of this package: images, requests for images, and the interface of an image store.

The resolver decides *which* image and *when* to build. An ``ImageStore`` pulls, builds and keeps images, with buildah
for the ``oci`` sandbox and with a container engine for ``docker``. Stores get full references
(``docker.io/library/debian:bookworm-slim``).
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
from seatrial.sandboxes.images.references import familiar

ImageSource = Literal["local", "pulled", "built", "bootstrapped", "forced build"]
LogSink = Callable[[str], None]
"""Takes parts of a build's output as they come."""

LABEL_KEY = "seatrial.key"
"""Content key of the environment that an image was built from. It marks images that Seatrial built."""
LABEL_TASK = "seatrial.task"
LABEL_BASES = "seatrial.bases"
"""JSON list of ``BaseImage``: the images it was built on."""
LABEL_BOOTSTRAPPED = "seatrial.bootstrapped"
"""Set on bases made from the package mirror. Images built on them inherit it."""


class RegistryUnreachable(ImageFault):
    """No registry answered. Another request within the next minutes would fail too."""


class ImageConfig(Frozen):
    """An image's settings for the processes that run in it."""

    env: dict[str, str] = {}
    workdir: str = "/"
    user: str = ""
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    on_build: tuple[str, ...] = ()
    """``ONBUILD`` instructions, which a builder would run in every build on this image."""

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
    """Values for the Dockerfile's ``ARG`` lines, from a compose file."""
    dockerfile: str = "Dockerfile"
    """Inside ``environment_dir``."""
    target: str = ""
    """The stage to build. Empty for the last one."""


class BaseImage(Frozen):
    """An image that another one was built on."""

    reference: str
    digest: str
    source: ImageSource


class Image(Frozen):
    """An image that is here and ready."""

    reference: str
    digest: str
    """``sha256:`` and the image's id, which is the digest of its configuration."""
    source: ImageSource
    config: ImageConfig = ImageConfig()
    layers: tuple[Path, ...] = ()
    """``oci`` only: read-only directories for the ``lowerdir`` of an overlay, topmost first."""
    build_log: Path | None = None
    below: str = ""
    """The digest of the task's image, if this is that image with an agent's layer on it."""

    @property
    def bases(self) -> tuple[BaseImage, ...]:
        """The images it was built on, from its label. Empty for images that others built."""
        label = self.config.labels.get(LABEL_BASES, "[]")
        return tuple(BaseImage(**base) for base in json.loads(label))

    @property
    def provenance(self) -> str:
        """For a trial's lock: the source, and the bases that came from the package mirror."""
        made = [familiar(base.reference) for base in self.bases if base.source == "bootstrapped"]
        return f"{self.source} (bootstrapped base: {', '.join(made)})" if made else self.source


def source_of(labels: Mapping[str, str], otherwise: ImageSource) -> ImageSource:
    """The source of a stored image, from its labels."""
    if LABEL_KEY in labels:
        return "built"
    return "bootstrapped" if LABEL_BOOTSTRAPPED in labels else otherwise


class BuildPlan(Frozen):
    """A build for any builder, without links, ignored files, here-documents and mounts."""

    reference: str
    """The name that the result gets."""
    context_dir: Path
    """A read-only directory for this build only, without the files that ``.dockerignore`` names."""
    dockerfile: Path
    """The rewritten Dockerfile, outside of ``context_dir``. All of its bases are in the store."""
    labels: dict[str, str] = {}
    timeout_sec: float = 600.0
    fetches: tuple[str, ...] = ()
    """Addresses that the builder itself fetches."""


class StoredImage(Frozen):
    """One line of a store's listing."""

    digest: str
    references: tuple[str, ...] = ()
    size_bytes: int = 0
    created_at: datetime | None = None
    labels: dict[str, str] = {}


class ImageStore(Protocol):
    """Where images are kept. Methods raise ``ImageFault``. A cancelled call ends its processes before it returns.

    The ``source`` of a returned image is ``local``, ``pulled``, ``built`` or ``bootstrapped``. Every trial calls
    ``find``, so it has to be quick: it starts no process and avoids round trips."""

    name: str
    """``oci`` or ``docker``: keeps the use records of several stores apart."""

    async def find(self, reference: str) -> Image | None:
        """The image if it is here, by its full reference or by its digest."""
        ...

    async def pull(self, reference: str, log: LogSink, *, trusted: bool = True) -> Image:
        """Pulls it. ``RegistryUnreachable`` without an answer, another ``ImageFault`` if the registry refused.

        Only a ``trusted`` registry gets the operator's credentials and network."""
        ...

    async def build(self, plan: BuildPlan, log: LogSink) -> Image:
        """Builds and pulls nothing. After the plan's time the builder is killed: ``ImageFault``."""
        ...

    async def load_root(self, reference: str, archive: Path, labels: dict[str, str], log: LogSink) -> Image:
        """Makes an image with one layer from a tar file of a root file system."""
        ...

    async def tag(self, image: Image, reference: str) -> None: ...

    async def push(self, image: Image, reference: str, log: LogSink) -> None:
        """Pushes under a name that the image was tagged with."""
        ...

    async def remove(self, digest: str) -> None:
        """Removes the image and its names. ``ImageFault`` if a container or another image needs it."""
        ...

    async def list(self) -> list[StoredImage]:
        """The images that Seatrial may manage: all in its own store, only labelled ones in an engine."""
        ...


class ImageProvider(Protocol):
    """Where a sandbox gets its image from. Faults are ``ImageFault`` with the image's name and a fix."""

    async def resolve(self, request: ImageRequest, log: LogSink | None = None) -> Image:
        """The image, by the contract's order of sources. Concurrent calls share one build."""
        ...

    def hold(self, image: Image) -> AbstractContextManager[None]:
        """Protects the image from pruning by any process until the context or this process ends."""
        ...
