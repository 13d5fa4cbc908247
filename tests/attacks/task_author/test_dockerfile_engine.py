"""Builds through a container engine: the same reading of Dockerfiles, and nothing of the machine's loopback."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from seatrial.errors import ImageFault
from seatrial.sandboxes.docker.images import EngineStore, shared_engine_images
from seatrial.sandboxes.images.assembly import Images
from seatrial.sandboxes.images.image import BuildPlan, ImageRequest
from seatrial.sandboxes.options import SandboxOptions
from tests.attacks.task_author.processors import allowed_processors, started
from tests.engine import Engine
from tests.engine_fixture import container_engine, image_cache, run_dir
from tests.integration.images.counter import Counter

__all__ = ["container_engine", "image_cache", "run_dir"]
pytestmark = pytest.mark.engine


@pytest.fixture
def engine_images(container_engine: Engine, image_cache: Path) -> Images:
    return shared_engine_images(
        SandboxOptions(cache=image_cache, docker_host=container_engine.host, max_build_memory_mb=300)
    )


def request(folder: Path, text: str) -> ImageRequest:
    (folder / "Dockerfile").write_text(f"FROM debian:bookworm-slim\n{text}\nLABEL test={os.urandom(8).hex()}\n")
    return ImageRequest(task_name="engine", environment_dir=folder)


async def test_the_loopback_of_the_machine_is_out_of_reach(
    engine_images: Images, counter: Counter, tmp_path: Path
) -> None:
    heard: list[str] = []
    text = f"RUN ({counter.tick}) && echo door is open || echo door is closed"
    image = await engine_images.resolver.resolve(request(tmp_path, text), heard.append)
    assert "door is closed\n" in "".join(heard)
    assert counter.count == 0
    await engine_images.store.remove(image.digest)


@pytest.mark.parametrize(
    "text",
    [
        'RUN --"mount"=type=bind,source=/,target=/x true',
        "ONBUILD RUN --mount=type=bind,source=/,target=/x true",
        "RUN --security=insecure true",
        "RUN --network=host true",
        "RUN\u00a0--network=host true",
    ],
)
async def test_hostile_instructions_never_reach_the_engine(engine_images: Images, tmp_path: Path, text: str) -> None:
    with pytest.raises(ImageFault):
        await engine_images.resolver.resolve(request(tmp_path, text))


async def test_the_engine_fetches_nothing_for_a_task(engine_images: Images, counter: Counter, tmp_path: Path) -> None:
    host, port = counter.address
    with pytest.raises(ImageFault, match="SEATRIAL_ALLOW_HOST_NETWORK_BUILDS"):
        await engine_images.resolver.resolve(request(tmp_path, f"ADD http://{host}:{port}/x /x"))
    assert counter.count == 0


async def test_the_operator_may_have_it_fetch(container_engine: Engine, counter: Counter, tmp_path: Path) -> None:
    """The twin: allowed, the engine does ask. The listener says nothing, so the build fails afterwards."""
    host, port = counter.address
    (tmp_path / "context").mkdir()
    (tmp_path / "Dockerfile").write_text(f'FROM scratch\nADD ["http://{host}:{port}/x", "/x"]\n')
    plan = BuildPlan(
        reference="localhost/fetching:1",
        context_dir=tmp_path / "context",
        dockerfile=tmp_path / "Dockerfile",
        fetches=(f"http://{host}:{port}/x",),
    )
    with pytest.raises(ImageFault):
        await EngineStore(container_engine.host, may_fetch=True).build(plan, lambda _: None)
    assert counter.count > 0


async def test_memory_of_a_build_is_limited(engine_images: Images, tmp_path: Path) -> None:
    with pytest.raises(ImageFault):
        await engine_images.resolver.resolve(request(tmp_path, "RUN head -c 900m /dev/zero | tail"))


@pytest.mark.parametrize(("cap", "allowed"), [(0.5, 0.5), (0.0, None)])
async def test_processors_of_a_build_are_limited(
    container_engine: Engine, image_cache: Path, tmp_path: Path, cap: float, allowed: float | None
) -> None:
    options = SandboxOptions(cache=image_cache, docker_host=container_engine.host, max_build_cpus=cap)
    token = str(random.randrange(10**8, 10**9))
    resolver = shared_engine_images(options).resolver
    building = asyncio.create_task(resolver.resolve(request(tmp_path, f"RUN sleep {token}")))
    try:
        assert allowed_processors(await started(token)) == allowed
    finally:
        building.cancel()
        await asyncio.gather(building, return_exceptions=True)
