"""Fixtures for every test that needs a container engine. Conftests import them; see ``engine`` for how it is shared."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine import Engine, shared_engine


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that all processes of this test run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base


@pytest.fixture(scope="session")
def image_cache() -> Path:
    """Images stay between runs: making a Debian takes half a minute."""
    path = Path(os.environ.get("SEATRIAL_TEST_CACHE", "/var/tmp/seatrial-test-cache"))
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture(scope="session")
def container_engine(run_dir: Path) -> Iterator[Engine]:
    with shared_engine(run_dir / "engine") as engine:
        yield engine
