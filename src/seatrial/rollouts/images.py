"""Images in a container engine, for frameworks that start containers themselves and need only an image name."""

from __future__ import annotations

from harbor.models.task.task import Task as HarborTask

from seatrial.domain.frozen import Frozen
from seatrial.rollouts.background import BackgroundLoop
from seatrial.rollouts.tasks import FoundTask
from seatrial.sandboxes.definition import Definition
from seatrial.sandboxes.docker.images import shared_engine_images
from seatrial.sandboxes.images.image import ImageProvider
from seatrial.sandboxes.options import SandboxOptions
from seatrial.settings import Settings


class EngineImage(Frozen):
    """An image that the engine has."""

    tag: str
    workdir: str


class EngineImages:
    """Builds, pulls or finds the image of a task in the engine, once per content. Blocking."""

    def __init__(self, settings: Settings, images: ImageProvider | None = None) -> None:
        self._options = SandboxOptions.of(settings)
        self._images = images or shared_engine_images(self._options).resolver

    def image(self, task: FoundTask) -> EngineImage:
        loop = BackgroundLoop("seatrial-images")
        try:
            return loop.wait(self._resolved(task))
        finally:
            loop.stop()

    async def _resolved(self, task: FoundTask) -> EngineImage:
        wanted = HarborTask(task.directory)
        environment_dir = wanted.paths.environment_dir
        definition = Definition.read(wanted.short_name, environment_dir, wanted.config.environment, self._options)
        image = await self._images.resolve(definition.image_request(force_build=False))
        return EngineImage(tag=image.reference, workdir=definition.workdir(image))
