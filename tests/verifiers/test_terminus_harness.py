"""verifiers' own ``terminus_2`` harness in a container of its docker runtime, with an image of ours."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.engine import Engine
from tests.verifiers.conftest import NewEvaluation
from tests.verifiers.tasks import give_uv
from tests.verifiers.test_generation_04 import traces_of

pytestmark = [pytest.mark.sandbox, pytest.mark.engine, pytest.mark.long, pytest.mark.timeout(900)]
WHERE = ["--env.taskset.place", "runtime", "--env.agent.runtime.type", "docker"]


def with_a_newer_python(task: Path) -> None:
    """The harness installs Harbor into the container, which needs Python 3.12; the next Debian has it."""
    environment = task / "environment"
    give_uv(environment, "debian:trixie-slim", "python3 tmux")
    with (environment / "Dockerfile").open("a") as dockerfile:
        dockerfile.write("COPY challenge.sh reply.sh /app/\n")


def test_terminus_2_reads_the_screen(evaluation: NewEvaluation, container_engine: Engine) -> None:
    done = evaluation("v04")
    task = done.folder / "tasks" / "read-the-screen"
    shutil.copytree(ROOT / "samples" / "read-the-screen", task)
    with_a_newer_python(task)
    client = ["--client.base-url", done.models, "--client.api-key-var", "OPENROUTER_API_KEY"]
    place = ["--env.taskset.tasks", task.parent, "--output-dir", "results", "--no-push", "--no-rich"]
    harness = ["--env.agent.harness.id", "terminus_2"]
    done.run(
        ["terminalbench", "-m", "solve-read-the-screen", *client, *place, *WHERE, *harness],
        DOCKER_HOST=container_engine.host,
    )
    [trace] = traces_of(done)
    assert trace["ok"], trace["errors"]
    assert trace["rewards"]["solved"]["score"] == 1.0
