"""What ``seatrial images`` does with many images: ``build``, ``push`` and ``list``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.domain.task import Task
from seatrial.errors import InvalidInput, SeatrialError
from seatrial.sandboxes.images.assembly import Images
from seatrial.sandboxes.images.image import (
    LABEL_TASK,
    Image,
    ImageRequest,
    ImageStore,
    LogSink,
    StoredImage,
    source_of,
)
from seatrial.sandboxes.images.locks import UseRecords
from seatrial.sandboxes.images.references import familiar, mapped, parse


class Outcome(Frozen):
    """The result for one task."""

    task: str
    image: Image | None = None
    problem: str = ""
    seconds: float = 0.0


Bring = Callable[[ImageRequest, LogSink], Awaitable[Image]]
Listener = Callable[[Outcome], None]
LogFor = Callable[[str], LogSink]
"""Returns the log for the output of one task."""


def request_for(task: Task, directory: Path, *, force_build: bool = False) -> ImageRequest:
    """The request that a sandbox makes for this task in its (Harbor) directory."""
    return ImageRequest(
        task_name=task.name,
        environment_dir=directory / "environment",
        docker_image=task.docker_image,
        force_build=force_build,
        build_timeout_sec=task.build_timeout_sec or ImageRequest.model_fields["build_timeout_sec"].default,
    )


async def bring_all(
    bring: Bring, requests: Sequence[ImageRequest], jobs: int, listener: Listener, log_for: LogFor
) -> list[Outcome]:
    """One outcome for each request. A failed task does not stop the others."""
    gate = asyncio.Semaphore(jobs)

    async def one(request: ImageRequest) -> Outcome:
        async with gate:
            began = time.monotonic()
            image, problem = None, ""
            try:
                image = await bring(request, log_for(request.task_name))
            except SeatrialError as error:
                problem = str(error)
        seconds = time.monotonic() - began
        outcome = Outcome(task=request.task_name, image=image, problem=problem, seconds=seconds)
        listener(outcome)
        return outcome

    return list(await asyncio.gather(*(one(request) for request in requests)))


class Publisher:
    """Pushes images under the names that the resolver uses."""

    def __init__(self, images: Images, registry: str, docker_registry: str, default_registry: str) -> None:
        self._images = images
        self._registry = registry
        self._docker_registry = docker_registry
        self._default_registry = default_registry

    def name_for(self, request: ImageRequest) -> str:
        configured = self._docker_registry if request.docker_image else self._default_registry
        registry = self._registry or configured
        if not registry:
            setting = "SEATRIAL_DOCKER_REGISTRY" if request.docker_image else "SEATRIAL_DEFAULT_REGISTRY"
            raise InvalidInput(f"There is no registry to push {request.task_name} to.", fix=f"Set {setting}.")
        return str(parse(mapped(registry, request.task_name, request.docker_image)))

    async def publish(self, request: ImageRequest, log: LogSink) -> Image:
        name = self.name_for(request)
        image = await self._images.resolver.resolve(request, log)
        with self._images.resolver.hold(image):
            await self._images.store.tag(image, name)
            await self._images.store.push(image, name, log)
        return image.model_copy(update={"reference": name})


class CatalogueLine(Frozen):
    """One image of a store."""

    name: str
    """The first reference in its short form. Empty for an image whose name moved to a newer one."""
    references: tuple[str, ...]
    digest: str
    source: str
    """``built``, ``bootstrapped``, or ``pulled`` for all others."""
    task: str
    size_bytes: int
    created_at: datetime | None
    used_at: datetime | None


async def catalogue(store: ImageStore, uses: UseRecords) -> list[CatalogueLine]:
    """Most recently used first."""
    lines = [_line(image, uses.last_used(image.digest)) for image in await store.list()]
    never = datetime.fromtimestamp(0, UTC)
    return sorted(lines, key=lambda line: line.used_at or line.created_at or never, reverse=True)


def _line(image: StoredImage, used: float) -> CatalogueLine:
    return CatalogueLine(
        name=familiar(image.references[0]) if image.references else "",
        references=image.references,
        digest=image.digest,
        source=source_of(image.labels, "pulled"),
        task=image.labels.get(LABEL_TASK, ""),
        size_bytes=image.size_bytes,
        created_at=image.created_at,
        used_at=datetime.fromtimestamp(used, UTC) if used else None,
    )
