"""``seatrial images`` as people type it, on real stores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.images.registry import Registry

pytestmark = pytest.mark.sandbox

Seatrial = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def seatrial(warm: Path, tmp_path: Path) -> Seatrial:
    def run(*words: object, **environ: str) -> subprocess.CompletedProcess[str]:
        known = {"SEATRIAL_HOME": str(tmp_path / "home"), "SEATRIAL_CACHE": str(warm)}
        return subprocess.run(
            [sys.executable, "-c", "from seatrial.cli.main import main; main()", *map(str, words)],
            env={**os.environ, **known, **environ},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )

    return run


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as running:
        yield running


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """A folder with one task of each format."""
    mark = os.urandom(4).hex()
    dockerfile = "FROM debian:bookworm-slim\nRUN echo {} > /name\nLABEL test=" + mark + "\n"
    new, old = tmp_path / "tasks" / "new-task", tmp_path / "tasks" / "old-task"
    files = {
        new / "task.toml": 'version = "1.0"\n[environment]\nbuild_timeout_sec = 120.0\n',
        new / "instruction.md": "Do it.\n",
        new / "environment" / "Dockerfile": dockerfile.format("new"),
        new / "tests" / "test.sh": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
        new / "solution" / "solve.sh": "#!/bin/bash\ntrue\n",
        old / "task.yaml": "instruction: Do it.\ndifficulty: easy\ncategory: x\ntags: []\nparser_name: pytest\n"
        "author_name: x\nmax_agent_timeout_sec: 60\nmax_test_timeout_sec: 60\n",
        old / "Dockerfile": dockerfile.format("old"),
        old / "docker-compose.yaml": "services:\n  client:\n    build:\n      dockerfile: Dockerfile\n",
        old / "run-tests.sh": "#!/bin/bash\ntrue\n",
        old / "solution.sh": "#!/bin/bash\ntrue\n",
        old / "tests" / "test_outputs.py": "def test_it():\n    pass\n",
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path / "tasks"


def test_build_takes_a_folder_and_tells_each_task(seatrial: Seatrial, tasks: Path) -> None:
    first = seatrial("images", "build", tasks, "--json")
    assert first.returncode == 0, first.stderr
    told = {line["task"]: line for line in json.loads(first.stdout)}
    assert set(told) == {"new-task", "old-task"}
    assert all(line["source"].startswith("built (bootstrapped base") for line in told.values())
    assert "echo new" in Path(told["new-task"]["log"]).read_text()
    again = seatrial("images", "build", tasks)
    assert again.returncode == 0
    assert told["old-task"]["reference"] in again.stdout
    listed = json.loads(seatrial("images", "list", "--json").stdout)
    by_digest = {line["digest"]: line for line in listed}
    assert by_digest[told["new-task"]["digest"]]["task"] == "new-task"
    assert by_digest[told["new-task"]["digest"]]["used_at"] is not None
    assert told["new-task"]["reference"] in seatrial("images", "list").stdout


def test_build_takes_a_dataset(seatrial: Seatrial, tasks: Path) -> None:
    assert seatrial("dataset", "create", "mine@1", tasks).returncode == 0
    built = seatrial("images", "build", "-d", "mine@1", "-n", "1")
    assert built.returncode == 0, built.stderr
    assert [line.split()[0] for line in sorted(built.stdout.splitlines())] == ["new-task", "old-task"]


def test_one_broken_task_does_not_stop_the_others(seatrial: Seatrial, tasks: Path) -> None:
    (tasks / "new-task" / "environment" / "Dockerfile").write_text("FROM debian:bookworm-slim\nRUN exit 9\n")
    ended = seatrial("images", "build", tasks)
    assert ended.returncode == 1
    assert "new-task: " in ended.stderr
    assert "exit status 9" in ended.stderr
    assert "1 of 2 failed" in ended.stderr
    assert ended.stdout.startswith("old-task")


def test_push_names_images_as_trials_look_for_them(seatrial: Seatrial, tasks: Path, registry: Registry) -> None:
    nowhere = seatrial("images", "push", tasks)
    assert (nowhere.returncode, registry.tags) == (2, set())
    assert "SEATRIAL_DEFAULT_REGISTRY" in nowhere.stderr
    toml = tasks / "new-task" / "task.toml"
    toml.write_text(toml.read_text() + 'docker_image = "owner/new:20251031"\n')
    places = {"SEATRIAL_DEFAULT_REGISTRY": f"{registry.address}/all", "DOCKER_REGISTRY": f"{registry.address}/tb"}
    pushed = seatrial("images", "push", tasks, "--force", **places)
    assert pushed.returncode == 0, pushed.stderr
    assert registry.tags == {"all:old-task", "tb:new-task-20251031"}


def test_bootstrap_again_is_quick_and_prune_only_tells(seatrial: Seatrial) -> None:
    made = seatrial("images", "bootstrap", "debian:12-slim")
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("debian:12-slim  sha256:")
    refused = seatrial("images", "bootstrap", "ubuntu:24.04")
    assert refused.returncode == 1
    assert "ubuntu:24.04" in refused.stderr
    told = seatrial("images", "prune", "--all", "--dry-run")
    assert "would be removed" in told.stdout
    assert "debian:12-slim" in seatrial("images", "list").stdout
    assert seatrial("images", "list", "--sandbox", "nothing").returncode == 2
