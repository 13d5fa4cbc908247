"""One home in which the samples have been run, for every test that only looks at what was kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import SAMPLES, CommandLine, Done
from tests.engine_fixture import container_engine, run_dir
from tests.trials import Workplace

__all__ = ["container_engine", "run_dir"]


@dataclass(frozen=True)
class SampleRun:
    """``seatrial run samples/ -a oracle -a nop --json``, and the home it left behind."""

    cli: CommandLine
    done: Done

    @property
    def summary(self) -> dict[str, Any]:
        return dict(self.done.json())

    def result(self, task: str, agent: str) -> dict[str, Any]:
        [found] = [row for row in self.summary["results"] if (row["task"], row["agent"]) == (task, agent)]
        return dict(found)

    def trial(self, task: str, agent: str) -> str:
        return str(self.result(task, agent)["trial"])


@pytest.fixture(scope="session")
def sample_run(tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> Iterator[SampleRun]:
    place = tmp_path_factory.mktemp("samples")
    with CommandLine(place / "home", image_cache, place) as cli:
        yield SampleRun(cli, cli("run", SAMPLES, "-a", "oracle", "-a", "nop", "--json"))


@pytest.fixture(
    params=[pytest.param("oci", marks=pytest.mark.sandbox), pytest.param("docker", marks=pytest.mark.engine)]
)
def workplace(request: pytest.FixtureRequest, tmp_path: Path, image_cache: Path) -> Workplace:
    """Each sandbox of ours in turn."""
    engine = request.getfixturevalue("container_engine") if request.param == "docker" else None
    return Workplace(tmp_path, image_cache, engine)
