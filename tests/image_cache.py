"""A cache with a bootstrapped Debian base, made once for a whole test run and for every suite that needs images.

Its images go with the run. The Debian that they start from is the one that the other suites keep from run to run.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest

from seatrial.sandboxes.images.assembly import Images, oci_images
from seatrial.sandboxes.images.fetcher import UnreachableRegistries
from seatrial.sandboxes.options import SandboxOptions
from tests.command_line import image_cache_dir

BASE = "docker.io/library/debian:bookworm-slim"


def warm_cache(factory: pytest.TempPathFactory) -> Path:
    """The cache's folder; ``debian:bookworm-slim`` is in its ``oci`` store and no registry will be asked for it."""
    kept = image_cache_dir()
    asyncio.run(_warm(SandboxOptions(cache=kept)))
    if os.environ.get("SEATRIAL_CACHE"):
        return kept
    here = factory.getbasetemp()
    options = SandboxOptions(cache=(here.parent if os.environ.get("PYTEST_XDIST_WORKER") else here) / "seatrial-cache")
    _lend_bases(kept, options)
    asyncio.run(_warm(options))
    return options.cache


async def _warm(options: SandboxOptions) -> None:
    images = oci_images(options)
    if await images.store.find(BASE) is None:
        await images.bootstrap.make(BASE, images.store, lambda _: None)


def cold_cache(warm: Path, folder: Path, **changes: object) -> tuple[Images, SandboxOptions]:
    """An empty store of its own that need not bootstrap: the base's archive is there, and no registry is asked."""
    options = SandboxOptions(cache=folder, image_low_water_gb=0.0, **changes)  # type: ignore[arg-type]
    _lend_bases(warm, options)
    UnreachableRegistries(options.images_dir / "silent").note("docker.io")
    return oci_images(options), options


def _lend_bases(cache: Path, options: SandboxOptions) -> None:
    """Debian's archives, so that nobody makes them again. Another process of the run may be doing the same."""
    bases = options.images_dir / "bases"
    bases.mkdir(parents=True, exist_ok=True)
    for archive in (cache / "images" / "bases").glob("*.tar"):
        with suppress(FileExistsError):
            (bases / archive.name).symlink_to(archive)
