"""What every test may use: the images of one cache, and the ``seatrial`` command with a home of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import CommandLine, image_cache_dir
from tests.long_cases import mark_long_cases
from tests.longest_first import order_longest_first
from tests.one_process import pytest_xdist_make_scheduler
from tests.properties import register_profiles
from tests.skips import pytest_make_collect_report, pytest_runtest_makereport

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport", "pytest_xdist_make_scheduler"]

register_profiles()

# As a worker does: LiteLLM would otherwise fetch its price list, and hold everything up while it tries.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_long_cases(items)
    order_longest_first(items)


@pytest.fixture(scope="session")
def image_cache() -> Path:
    """Shared by the whole run and by later ones: a base is bootstrapped and an image built only once."""
    return image_cache_dir()


@pytest.fixture
def cli(tmp_path: Path, image_cache: Path) -> Iterator[CommandLine]:
    with CommandLine(tmp_path / "home", image_cache, tmp_path) as command:
        yield command
