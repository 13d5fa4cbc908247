"""A store in memory that counts what it is told to do, and the parts around it."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.assembly import Images, assemble
from seatrial.sandboxes.images.image import (
    LABEL_BOOTSTRAPPED,
    LABEL_KEY,
    BuildPlan,
    Image,
    ImageConfig,
    LogSink,
    RegistryUnreachable,
    StoredImage,
)
from seatrial.sandboxes.options import SandboxOptions


class FakeStore:
    """Keeps images as names; ``registry`` is what can be pulled, ``answers`` whether anybody is there to pull from."""

    name = "fake"

    def __init__(self) -> None:
        self.images: dict[str, Image] = {}
        self.registry: set[str] = set()
        self.answers = True
        self.build_sec = 0.0
        self.may_build = asyncio.Event()
        self.may_build.set()
        self.build_problem = ""
        self.calls: list[str] = []
        self.plans: list[BuildPlan] = []
        self.dockerfiles: list[str] = []

    def add(self, reference: str, **labels: str) -> Image:
        digest = "sha256:" + hashlib.sha256(f"{reference} {len(self.calls)}".encode()).hexdigest()
        source = "built" if LABEL_KEY in labels else "bootstrapped" if LABEL_BOOTSTRAPPED in labels else "local"
        image = Image(reference=reference, digest=digest, source=source, config=ImageConfig(labels=labels))
        self.images[reference] = image
        return image

    async def find(self, reference: str) -> Image | None:
        known = self.images.get(reference)
        return known or next((image for image in self.images.values() if image.digest == reference), None)

    async def pull(self, reference: str, log: LogSink, *, trusted: bool = True) -> Image:
        self.calls.append(f"pull {reference}")
        if not self.answers:
            raise RegistryUnreachable("Nobody answered.")
        if reference not in self.registry:
            raise ImageFault(f"{reference}: manifest unknown")
        return self.add(reference).model_copy(update={"source": "pulled"})

    async def build(self, plan: BuildPlan, log: LogSink) -> Image:
        self.calls.append("build")
        self.plans.append(plan)
        self.dockerfiles.append(plan.dockerfile.read_text())
        log("STEP 1\n")
        await asyncio.sleep(self.build_sec)
        await self.may_build.wait()
        if self.build_problem:
            raise ImageFault(self.build_problem)
        self.calls.append("built")
        return self.add(plan.reference, **plan.labels)

    async def load_root(self, reference: str, archive: Path, labels: dict[str, str], log: LogSink) -> Image:
        self.calls.append(f"load {reference}")
        return self.add(reference, **labels)

    async def tag(self, image: Image, reference: str) -> None:
        self.calls.append(f"tag {reference}")
        self.images[reference] = image.model_copy(update={"reference": reference})

    async def push(self, reference: str, log: LogSink) -> None:
        self.calls.append(f"push {reference}")
        self.registry.add(reference)

    async def remove(self, digest: str) -> None:
        self.calls.append(f"remove {digest}")
        self.images = {name: image for name, image in self.images.items() if image.digest != digest}

    async def list(self) -> list[StoredImage]:
        return [
            StoredImage(digest=image.digest, references=(name,), size_bytes=100, labels=image.config.labels)
            for name, image in self.images.items()
        ]


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def options(tmp_path: Path) -> SandboxOptions:
    return SandboxOptions(cache=tmp_path / "cache", image_low_water_gb=0.0)


@pytest.fixture
def images(store: FakeStore, options: SandboxOptions) -> Images:
    return assemble(store, options, environ={})


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    folder = tmp_path / "task" / "environment"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM debian:bookworm-slim\nCOPY data.txt /data.txt\n")
    (folder / "data.txt").write_text("data\n")
    return folder
