"""One home with a hostile trial, for all who read its results."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.result_reader.hostile_home import fill
from tests.command_line import CommandLine


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    place: Path = tmp_path_factory.mktemp("results")
    asyncio.run(fill(place / "home", place))
    with CommandLine(place / "home", place / "cache", place) as cli:
        yield cli
