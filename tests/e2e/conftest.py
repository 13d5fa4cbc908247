"""One home in which the samples have been run, for every test that only looks at what was kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import SAMPLES, CommandLine, Done


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
