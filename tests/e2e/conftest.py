"""A container engine, and each sandbox of ours in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine_fixture import container_engine, run_dir
from tests.trials import Workplace

__all__ = ["container_engine", "run_dir"]


@pytest.fixture(
    params=[pytest.param("oci", marks=pytest.mark.sandbox), pytest.param("docker", marks=pytest.mark.engine)]
)
def workplace(request: pytest.FixtureRequest, tmp_path: Path, image_cache: Path) -> Workplace:
    """Each sandbox of ours in turn."""
    engine = request.getfixturevalue("container_engine") if request.param == "docker" else None
    return Workplace(tmp_path, image_cache, engine)
