"""A cache with a bootstrapped Debian base, made once for a whole test run and for every suite that needs images.

With ``SEATRIAL_CACHE`` set (as in CI) the base survives from one run to the next.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from seatrial.sandboxes.images.assembly import Images, oci_images
from seatrial.sandboxes.images.bases import SilentRegistries
from seatrial.sandboxes.options import SandboxOptions

BASE = "docker.io/library/debian:bookworm-slim"


def warm_cache(factory: pytest.TempPathFactory) -> Path:
    """The cache's folder; ``debian:bookworm-slim`` is in its ``oci`` store and no registry will be asked for it."""
    if os.environ.get("SEATRIAL_CACHE"):
        cache = Path(os.environ["SEATRIAL_CACHE"])
    else:
        here = factory.getbasetemp()
        cache = (here.parent if os.environ.get("PYTEST_XDIST_WORKER") else here) / "seatrial-cache"
    asyncio.run(_warm(SandboxOptions(cache=cache)))
    return cache


async def _warm(options: SandboxOptions) -> None:
    images = oci_images(options)
    if await images.store.find(BASE) is None:
        await images.bootstrap.make(BASE, images.store, lambda _: None)


def cold_cache(warm: Path, folder: Path, **changes: object) -> tuple[Images, SandboxOptions]:
    """An empty store of its own that need not bootstrap: the base's archive is there, and no registry is asked."""
    options = SandboxOptions(cache=folder, image_low_water_gb=0.0, **changes)  # type: ignore[arg-type]
    bases = options.images_dir / "bases"
    bases.mkdir(parents=True)
    for archive in (warm / "images" / "bases").glob("*.tar"):
        (bases / archive.name).symlink_to(archive)
    SilentRegistries(options.images_dir / "silent").note("docker.io")
    return oci_images(options), options
