"""Many images at once: what ``seatrial images build`` and ``push`` do for a folder of tasks or a dataset."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from seatrial.domain.frozen import Frozen
from seatrial.domain.task import Task
from seatrial.errors import InvalidInput, SeatrialError
from seatrial.sandboxes.images.assembly import Images
from seatrial.sandboxes.images.image import Image, ImageRequest, LogSink
from seatrial.sandboxes.images.references import mapped, parse


class Outcome(Frozen):
    """How it went for one task."""

    task: str
    image: Image | None = None
    problem: str = ""
    seconds: float = 0.0


Bring = Callable[[ImageRequest, LogSink], Awaitable[Image]]
Listener = Callable[[Outcome], None]
LogFor = Callable[[str], LogSink]
"""Gives the sink for the output that belongs to one task."""


def request_for(task: Task, directory: Path, *, force_build: bool = False) -> ImageRequest:
    """What a sandbox asks for when it runs this task from its (Harbor) directory."""
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
    """One outcome for each request; a task that fails does not stop the others."""
    gate = asyncio.Semaphore(jobs)

    async def one(request: ImageRequest) -> Outcome:
        async with gate:
            began = time.monotonic()
            try:
                image = await bring(request, log_for(request.task_name))
                told = Outcome(task=request.task_name, image=image, seconds=time.monotonic() - began)
            except SeatrialError as error:
                told = Outcome(task=request.task_name, problem=str(error), seconds=time.monotonic() - began)
        listener(told)
        return told

    return list(await asyncio.gather(*(one(request) for request in requests)))


class Publisher:
    """Pushes images under the names that the resolver looks for."""

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
