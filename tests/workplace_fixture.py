"""Fixtures for tests that run the same on each sandbox of ours. Conftests import them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.sandboxes.sandbox import Sandbox
from tests.engine_fixture import container_engine, image_cache, run_dir
from tests.trials import Workplace

__all__ = ["container_engine", "image_cache", "make", "run_dir", "workplace"]

Make = Callable[..., Awaitable[Sandbox]]

OCI = pytest.param("oci", marks=pytest.mark.sandbox)
DOCKER = pytest.param("docker", marks=pytest.mark.engine)


@pytest.fixture(params=[OCI, DOCKER])
def workplace(request: pytest.FixtureRequest, tmp_path: Path, image_cache: Path) -> Workplace:
    engine = request.getfixturevalue("container_engine") if request.param == "docker" else None
    return Workplace(tmp_path, image_cache, engine)


@pytest.fixture
async def make(workplace: Workplace) -> AsyncIterator[Make]:
    """Starts sandboxes that are gone after the test."""
    started: list[Sandbox] = []

    async def make(**changes: Any) -> Sandbox:
        sandbox = workplace.sandbox(**changes)
        started.append(sandbox)
        await sandbox.start(force_build=False)
        return sandbox

    yield make
    for sandbox in started:
        await sandbox.stop(delete=True)
