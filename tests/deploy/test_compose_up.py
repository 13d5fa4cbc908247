"""``docker compose up``, really: every part in a container, and a job of the samples from its start to its result.

Images that cannot be pulled here have stand-ins, see ``stand_ins/Dockerfile``."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.deploy.conftest import Machine
from tests.deploy.talk import Talk
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.engine, pytest.mark.timeout(1800)]


@dataclass(frozen=True)
class Composed:
    machine: Machine
    folder: Path

    def compose(self, *arguments: str) -> str:
        files = [f"--file={self.folder / name}" for name in ("compose.yaml", "stand-ins.yaml", "lent.yaml")]
        return self.machine.docker("compose", f"--project-directory={self.folder}", *files, *arguments)


@pytest.fixture(scope="module")
def composed(images: Machine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    images.build("seatrial-stand-ins", f"--file={ROOT / 'tests/deploy/stand_ins/Dockerfile'}")
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    for name in ("compose.yaml", ".env.example", "tests/deploy/stand-ins.yaml"):
        shutil.copy(ROOT / name, folder)
    # The Debian of the samples, so that the worker need not make it.
    base = images.base("bookworm-slim")
    lent = f"{base}:/var/cache/seatrial/images/bases/{base.name}:ro"
    (folder / "lent.yaml").write_text(f"services: {{worker: {{volumes: ['{lent}']}}}}\n")
    subprocess.run(["sh", "scripts/new-env.sh"], cwd=folder, check=True)
    composed = Composed(images, folder)
    try:
        yield composed
    finally:
        composed.compose("down", "--volumes", "--timeout=5")


def test_a_job_runs_through_every_part(composed: Composed) -> None:
    token = composed.compose("run", "--rm", "-T", "api", "token", "create", "me", "--role", "admin").splitlines()[-1]
    composed.compose("up", "--detach", "--wait", "--no-build")
    talk = Talk(composed.machine, "http://127.0.0.1:8000", token)
    assert Talk(composed.machine, "http://127.0.0.1:8000").status("/api/v1/jobs") == 401
    assert Talk(composed.machine, "http://127.0.0.1:3000").status("/health") == 200
    until(lambda: talk.status("/ready") == 200, "ready", 180)

    talk.text("/api/v1/samples", {})
    trials = talk.run({"tasks": ["answer-file"], "attempts": 2, "agents": [{"name": "oracle"}]})
    assert [trial["outcome"] for trial in trials] == ["passed", "passed"], trials[0]["result"]
    assert [trial["result"]["marks"] for trial in trials] == [[], []]
    # Its files came from the worker through S3.
    assert talk.json(f"/api/v1/trials/{trials[0]['id']}/files")["items"]

    composed.compose("stop", "--timeout=60", "worker")
    [state] = composed.compose("ps", "--all", "--format={{.ExitCode}}", "worker").splitlines()
    assert state == "0"
