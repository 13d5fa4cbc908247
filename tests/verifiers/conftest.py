"""The scripted model server as a process, and one evaluation per generation that several tests look at."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine_fixture import container_engine, run_dir
from tests.verifiers.generations import Evaluation, virtual_environment

__all__ = ["container_engine", "run_dir"]

NewEvaluation = Callable[[str], Evaluation]


@pytest.fixture(scope="session")
def models() -> Iterator[str]:
    """The server's address; its model ``shell`` runs the commands that an instruction names."""
    command = [sys.executable, "-m", "seatrial.testing.model_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        yield str(json.loads(server.stdout.readline())["base_url"])
        server.kill()


@pytest.fixture(scope="session")
def evaluation(tmp_path_factory: pytest.TempPathFactory, image_cache: Path, models: str) -> Iterator[NewEvaluation]:
    """A new one of a generation: ``evaluation("v03")``."""
    made: list[Evaluation] = []

    def new(extra: str) -> Evaluation:
        folder = tmp_path_factory.mktemp(extra)
        made.append(Evaluation(virtual_environment(extra), folder, image_cache, models))
        return made[-1]

    yield new
    for each in made:
        each.end()
