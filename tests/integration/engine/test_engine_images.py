"""The image store of a container engine, and that one image is built once however many sandboxes ask."""

from __future__ import annotations

import asyncio
import io
import tarfile
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from seatrial.errors import ImageFault
from seatrial.sandboxes.docker.images import EngineStore
from seatrial.sandboxes.images.assembly import assemble
from seatrial.sandboxes.images.image import (
    LABEL_BOOTSTRAPPED,
    LABEL_KEY,
    BuildPlan,
    Image,
    ImageRequest,
    RegistryUnreachable,
)
from seatrial.sandboxes.options import SandboxOptions
from tests.engine import Engine
from tests.integration.engine.counting import CountingStore

pytestmark = pytest.mark.engine

NOWHERE = "localhost:9/nobody/there:1"


@pytest.fixture
def store(container_engine: Engine) -> EngineStore:
    return EngineStore(container_engine.host, registry_patience_sec=10)


@pytest.fixture
def name() -> str:
    return f"localhost/seatrial-suite:{uuid.uuid4().hex[:12]}"


@pytest_asyncio.fixture
async def base(store: EngineStore, name: str, tmp_path: Path) -> AsyncIterator[Image]:
    """An image with one layer and nothing much in it."""
    archive = tmp_path / "root.tar"
    with tarfile.open(archive, "w") as tar:
        member = tarfile.TarInfo("hello")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"hello"))
    image = await store.load_root(name, archive, {LABEL_BOOTSTRAPPED: 'say "$hi"'}, lambda _: None)
    yield image
    if await store.find(image.digest) is not None:
        await store.remove(image.digest)


def _plan(name: str, tmp_path: Path, dockerfile: str) -> BuildPlan:
    context = tmp_path / "context"
    context.mkdir(exist_ok=True)
    (context / "file").write_text("in the context")
    (tmp_path / "Dockerfile").write_text(dockerfile)
    return BuildPlan(
        reference=name,
        context_dir=context,
        dockerfile=tmp_path / "Dockerfile",
        labels={LABEL_KEY: "k"},
        timeout_sec=600,
    )


async def test_loaded_image_is_found(store: EngineStore, base: Image, name: str) -> None:
    assert base.source == "bootstrapped"
    assert base.config.labels[LABEL_BOOTSTRAPPED] == 'say "$hi"'
    assert base.config.cmd == ("bash",)
    for reference in (name, base.digest):
        found = await store.find(reference)
        assert found is not None and found.digest == base.digest


async def test_what_is_not_here_is_not_found(store: EngineStore) -> None:
    assert await store.find("docker.io/library/nobody-has-this:1") is None


async def test_build(store: EngineStore, base: Image, name: str, tmp_path: Path) -> None:
    lines: list[str] = []
    dockerfile = f"FROM {name}\nCOPY file /file\nENV A=b\nWORKDIR /w\nUSER 7\n"
    built = await store.build(_plan(f"{name}-built", tmp_path, dockerfile), lines.append)
    try:
        assert built.source == "built" and built.config.env["A"] == "b"
        assert (built.config.workdir, built.config.user, built.config.labels[LABEL_KEY]) == ("/w", "7", "k")
        assert "COPY file" in "".join(lines)
        assert built.digest in {image.digest for image in await store.list()}
    finally:
        await store.remove(built.digest)
    assert await store.find(built.digest) is None


async def test_failed_build_says_why(store: EngineStore, base: Image, name: str, tmp_path: Path) -> None:
    with pytest.raises(ImageFault, match="no-such-file"):
        await store.build(_plan(f"{name}-bad", tmp_path, f"FROM {name}\nCOPY no-such-file /\n"), lambda _: None)
    assert await store.find(f"{name}-bad") is None


async def test_tag_and_remove(store: EngineStore, base: Image, name: str) -> None:
    await store.tag(base, f"{name}-again")
    again = await store.find(f"{name}-again")
    assert again is not None and again.digest == base.digest
    await store.remove(base.digest)
    assert await store.find(name) is None and await store.find(f"{name}-again") is None


async def test_silent_registry_is_told_from_one_that_refuses(store: EngineStore) -> None:
    with pytest.raises(RegistryUnreachable):
        await store.pull(NOWHERE, lambda _: None)


async def test_engine_that_is_not_there(tmp_path: Path) -> None:
    absent = EngineStore(f"unix://{tmp_path}/nothing.sock")
    with pytest.raises(ImageFault, match="does not answer"):
        await absent.find("docker.io/library/debian:12")


async def test_one_build_for_forty_askers(container_engine: Engine, image_cache: Path, tmp_path: Path) -> None:
    store = CountingStore(container_engine.host)
    options = SandboxOptions(cache=image_cache, docker_host=container_engine.host)
    (tmp_path / "Dockerfile").write_text(f"FROM debian:bookworm-slim\nENV ONLY_HERE={uuid.uuid4().hex}\n")
    resolver = assemble(store, options).resolver
    request = ImageRequest(task_name="forty", environment_dir=tmp_path)
    images = await asyncio.gather(*(resolver.resolve(request) for _ in range(40)))
    assert store.builds == 1
    assert len({image.digest for image in images}) == 1
    await store.remove(images[0].digest)
