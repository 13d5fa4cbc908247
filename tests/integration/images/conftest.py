from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.sandboxes.images.assembly import Images, oci_images
from seatrial.sandboxes.images.image import ImageRequest
from seatrial.sandboxes.options import SandboxOptions
from tests.image_cache import warm_cache
from tests.integration.images.counter import Counter
from tests.integration.images.looking import Write


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return warm_cache(tmp_path_factory)


@pytest.fixture
def options(warm: Path) -> SandboxOptions:
    return SandboxOptions(cache=warm, image_low_water_gb=0.0)


@pytest.fixture
def images(options: SandboxOptions) -> Images:
    return oci_images(options)


@pytest.fixture
def open_options(options: SandboxOptions) -> SandboxOptions:
    """Builds share the machine's network, so that a listener on its loopback can count them."""
    return options.model_copy(update={"network_mode": "host", "allow_host_network": True})


@pytest.fixture
def open_images(open_options: SandboxOptions) -> Images:
    return oci_images(open_options)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes an environment and asks for its image. Each test's Dockerfile is its own, so nothing is built before."""

    def make(dockerfile: str, files: dict[str, str] | None = None, **asked: object) -> ImageRequest:
        folder = tmp_path / "task" / "environment"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "Dockerfile").write_text(f"{dockerfile}\nLABEL test={os.urandom(8).hex()}\n")
        for name, content in (files or {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        return ImageRequest(task_name="a-task", environment_dir=folder, **asked)  # type: ignore[arg-type]

    return make


@pytest.fixture
def counter() -> Iterator[Counter]:
    with Counter() as running:
        yield running
