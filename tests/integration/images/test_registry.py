"""Pulling and pushing through a registry that speaks the protocol, on loopback."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.assembly import Images, oci_images
from seatrial.sandboxes.images.batch import Publisher, bring_all
from seatrial.sandboxes.images.build_network import MachineNetwork
from seatrial.sandboxes.images.buildah import BuildahStore
from seatrial.sandboxes.images.image import ImageRequest, RegistryUnreachable
from seatrial.sandboxes.options import SandboxOptions
from seatrial.settings import tool_environment
from tests.image_cache import cold_cache
from tests.integration.images.looking import Write, read
from tests.integration.images.registry import Registry

pytestmark = pytest.mark.sandbox


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as running:
        yield running


def quiet(_: str) -> None:
    pass


async def test_what_is_pushed_is_found_by_the_resolver_elsewhere(
    warm: Path, images: Images, write: Write, registry: Registry, tmp_path: Path
) -> None:
    repository = f"{registry.address}/team/tb"
    plain = write("FROM debian:bookworm-slim\nRUN echo pushed > /pushed")
    pinned = plain.model_copy(update={"docker_image": "owner/name:20251031", "force_build": True})
    publisher = Publisher(images, "", docker_registry=repository, default_registry=repository)
    told = await bring_all(publisher.publish, [plain, pinned], 2, lambda _: None, lambda _: quiet)
    assert [outcome.problem for outcome in told] == ["", ""]
    assert registry.tags == {"team/tb:a-task", "team/tb:a-task-20251031"}

    elsewhere, _ = cold_cache(warm, tmp_path / "cache", docker_registry=repository, default_registry=repository)
    by_default = await elsewhere.resolver.resolve(plain)
    assert (by_default.source, by_default.reference) == ("pulled", f"{repository}:a-task")
    assert read(by_default, "/pushed") == "pushed\n"
    mapped = await elsewhere.resolver.resolve(pinned.model_copy(update={"force_build": False}))
    assert mapped.reference == f"{repository}:a-task-20251031"
    assert by_default.digest == mapped.digest == told[0].image.digest  # type: ignore[union-attr]
    asked = len(registry.asked)
    assert (await elsewhere.resolver.resolve(plain)).source == "local"
    assert len(registry.asked) == asked


async def test_pull_switched_off_asks_nobody(
    warm: Path, images: Images, write: Write, registry: Registry, tmp_path: Path
) -> None:
    repository = f"{registry.address}/tb"
    request = write("FROM debian:bookworm-slim\nRUN true")
    await Publisher(images, repository, "", "").publish(request, quiet)
    pinned = ImageRequest(task_name="x", environment_dir=request.environment_dir, docker_image=f"{repository}:a-task")
    registry.asked.clear()
    closed, _ = cold_cache(warm, tmp_path / "closed", pull_if_not_exists=False)
    with pytest.raises(ImageFault, match=rf"{repository}:a-task .*pull {repository}:a-task"):
        await closed.resolver.resolve(pinned)
    assert registry.asked == []
    opened, _ = cold_cache(warm, tmp_path / "open", image_registries=registry.address)
    assert (await opened.resolver.resolve(pinned)).source == "pulled"


async def test_a_registry_that_says_no_is_not_a_silent_one(images: Images, registry: Registry) -> None:
    with pytest.raises(ImageFault, match="manifest unknown") as caught:
        await images.store.pull(f"{registry.address}/no/such:1", quiet)
    assert not isinstance(caught.value, RegistryUnreachable)
    assert any("manifests/1" in line for line in registry.asked)


async def test_nobody_there_is_silence(images: Images) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        with pytest.raises(RegistryUnreachable):
            await images.store.pull(f"127.0.0.1:{reserved.getsockname()[1]}/x:1", quiet)


async def test_somebody_who_never_answers_is_silence_too(warm: Path) -> None:
    store = BuildahStore(warm / "images" / "oci", tool_environment(), MachineNetwork("test"), registry_patience_sec=1.0)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        with pytest.raises(RegistryUnreachable):
            await store.pull(f"127.0.0.1:{deaf.getsockname()[1]}/x:1", quiet)


async def test_where_no_registry_answers_debian_is_bootstrapped_and_python_is_not(
    warm: Path, write: Write, tmp_path: Path
) -> None:
    images, _ = cold_cache(warm, tmp_path / "cache")
    heard: list[str] = []
    image = await images.resolver.resolve(
        write("FROM debian:12-slim\nRUN . /etc/os-release && echo $ID > /id"), heard.append
    )
    assert read(image, "/id") == "debian\n"
    assert image.bases[0].reference == "docker.io/library/debian:12-slim"
    assert image.bases[0].source == "bootstrapped"
    assert "is made from packages" in "".join(heard)
    with pytest.raises(ImageFault, match=r"python:3\.12-slim"):
        await images.resolver.resolve(write("FROM python:3.12-slim"))
    off = oci_images(SandboxOptions(cache=tmp_path / "cache", bootstrap_bases=False))
    with pytest.raises(ImageFault, match=r"debian:12\b"):
        await off.resolver.resolve(write("FROM debian:12"))


async def test_pruning_takes_what_nobody_uses(warm: Path, write: Write, tmp_path: Path) -> None:
    images, options = cold_cache(warm, tmp_path / "cache")
    used = await images.resolver.resolve(write("FROM debian:bookworm-slim\nRUN echo used > /used"))
    unused = await images.resolver.resolve(write("FROM debian:bookworm-slim\nRUN echo unused > /unused"))
    with images.resolver.hold(used):
        other_process = oci_images(options)
        report = await other_process.pruner.prune(everything=True)
        gone = {image.digest for image in report.removed}
        assert unused.digest in gone
        assert used.digest not in gone
        assert not unused.layers[0].exists()
        assert read(used, "/used") == "used\n"
        assert (used.layers[-1] / "usr").exists()  # the base lost its name, its layer is still needed
    await images.pruner.prune(everything=True)
    assert await images.store.list() == []
    assert not used.layers[0].exists()
