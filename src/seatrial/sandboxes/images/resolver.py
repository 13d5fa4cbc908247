"""Which image a trial gets, for every sandbox.

With ``docker_image``: the private copy in the operator's registry, then the image itself. Without it: the default
registry's image of the task, then a build. Images in the store are preferred to pulls. A build never replaces a pinned
image that is not available, unless the request says so.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager

from seatrial.errors import ImageFault, SeatrialError
from seatrial.sandboxes.images.builder import EnvironmentBuilder
from seatrial.sandboxes.images.fetcher import Fetcher
from seatrial.sandboxes.images.image import Image, ImageRequest, ImageStore, LogSink
from seatrial.sandboxes.images.locks import UseRecords
from seatrial.sandboxes.images.references import familiar, mapped, parse
from seatrial.sandboxes.images.single_flight import SingleFlight


class ImageResolver:
    """See ``ImageProvider``."""

    def __init__(
        self,
        store: ImageStore,
        fetcher: Fetcher,
        builder: EnvironmentBuilder,
        uses: UseRecords,
        *,
        docker_registry: str = "",
        default_registry: str = "",
        may_pull: bool = True,
    ) -> None:
        self._store = store
        self._fetcher = fetcher
        self._builder = builder
        self._uses = uses
        self._docker_registry = docker_registry
        self._default_registry = default_registry
        self._may_pull = may_pull
        self._flights: SingleFlight[Image] = SingleFlight()

    async def resolve(self, request: ImageRequest, log: LogSink | None = None) -> Image:
        return await self._flights.join(request.model_dump_json(), lambda sink: self._resolve(request, sink), log)

    def hold(self, image: Image) -> AbstractContextManager[None]:
        return self._uses.hold(image.digest)

    def candidates(self, request: ImageRequest) -> tuple[str, ...]:
        """The full references to look for, best first. ``push`` uses the first one."""
        wanted = []
        if request.docker_image:
            if self._docker_registry:
                wanted.append(mapped(self._docker_registry, request.task_name, request.docker_image))
            wanted.append(request.docker_image)
        elif self._default_registry:
            wanted.append(mapped(self._default_registry, request.task_name))
        return tuple(str(parse(name)) for name in wanted)

    async def _resolve(self, request: ImageRequest, log: LogSink) -> Image:
        try:
            while True:
                image = await self._choose(request, log)
                if self._uses.note(image.digest):
                    return image
                await asyncio.sleep(0.1)  # another process is removing it
        except ImageFault:
            raise
        except (SeatrialError, OSError) as error:
            message, fix = (error.message, error.fix) if isinstance(error, SeatrialError) else (str(error), "")
            raise ImageFault(f"Image of {request.task_name}: {message}", fix=fix) from error

    async def _choose(self, request: ImageRequest, log: LogSink) -> Image:
        if request.force_build:
            built = await self._builder.image(request, log)
            return built.model_copy(update={"source": "forced build"} if request.docker_image else {})
        names = self.candidates(request)
        found = await self._find_here(names)
        if found is not None:
            return found
        if request.docker_image:
            return await self._bring_pinned(names, log)
        for name in names if self._may_pull else ():
            try:
                return await self._fetcher.pull(name, log)
            except ImageFault as fault:
                log(f"{fault} Building it from the Dockerfile.\n")
        return await self._builder.image(request, log)

    async def _find_here(self, names: tuple[str, ...]) -> Image | None:
        for name in names:
            found = await self._store.find(name)
            if found is not None:
                source = "bootstrapped" if found.source == "bootstrapped" else "local"
                return found.model_copy(update={"source": source})
        return None

    async def _bring_pinned(self, names: tuple[str, ...], log: LogSink) -> Image:
        if self._may_pull:
            for name in names[:-1]:
                try:
                    return await self._fetcher.pull(name, log)
                except ImageFault as fault:
                    log(f"{fault} Trying {familiar(names[-1])}.\n")
        try:
            return await self._fetcher.bring(names[-1], log)
        except ImageFault as fault:
            tried = f" (nor {', '.join(familiar(name) for name in names[:-1])})" if len(names) > 1 else ""
            raise type(fault)(
                f"{fault.message}{tried}",
                fix=f"{fault.fix} Or build the Dockerfile with --force-build.".strip(),
            ) from fault
