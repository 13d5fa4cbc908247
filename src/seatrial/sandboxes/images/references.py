"""Image references: short for people, full inside. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from seatrial.errors import ImageFault

_PATTERN = re.compile(
    r"(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_REGISTRY = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Reference:
    """``registry/repository[:tag][@digest]`` in full."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.registry}/{self.repository}{tag}{digest}"

    @property
    def on_this_machine(self) -> bool:
        """Whether the registry is called without TLS, as Docker does for loopback addresses."""
        host = self.registry.rpartition(":")[0] or self.registry
        return host == "localhost" or host.startswith("127.") or host == "[::1]"


def parse(text: str) -> Reference:
    """Docker's rules: no registry means ``docker.io``, no owner there means ``library``, no tag means ``latest``."""
    first, slash, rest = text.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        registry, path = first, rest
    else:
        registry, path = "docker.io", text
    match = _PATTERN.fullmatch(path)
    if match is None or not _REGISTRY.fullmatch(registry):
        raise ImageFault(f"{text!r} is not an image reference.", fix="Write it as name:tag.")
    if registry == "index.docker.io":
        registry = "docker.io"
    repository, tag, digest = match["repository"], match["tag"] or "", match["digest"] or ""
    if registry == "docker.io" and "/" not in repository:
        repository = f"library/{repository}"
    return Reference(registry, repository, tag if tag or digest else "latest", digest)


def familiar(reference: str) -> str:
    """The short form for people: ``debian:bookworm-slim``."""
    return reference.removeprefix("docker.io/").removeprefix("library/")


def version_of(docker_image: str) -> str:
    """The version in the name of a private copy: the pinned image's tag, or the start of its digest."""
    reference = parse(docker_image)
    return reference.tag or reference.digest.removeprefix("sha256:")[:12]


def mapped(registry: str, task_name: str, docker_image: str | None = None) -> str:
    """``<registry>:<task>-<version>`` for a pinned image, ``<registry>:<task>`` without one."""
    tag = tag_for(task_name) if docker_image is None else f"{tag_for(task_name)}-{version_of(docker_image)}"
    return f"{registry.rstrip('/')}:{tag[:128]}"


def tag_for(task_name: str) -> str:
    """A task's name as a tag, without the owner (``org/task``)."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", task_name.rpartition("/")[2]).lstrip(".-")
    return name or "task"
