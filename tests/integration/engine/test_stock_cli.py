"""Both sandboxes from the plain ``harbor`` command, as Harbor's users would try them first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine import Engine

HARBOR = Path(sys.executable).parent / "harbor"

TASK = """schema_version = "1.4"
[task]
name = "tests/stock-cli"
[agent]
timeout_sec = 600.0
[verifier]
timeout_sec = 600.0
[environment]
cpus = 1
memory_mb = 512
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    directory = tmp_path / "stock-cli"
    for name, text in {
        "task.toml": TASK,
        "instruction.md": "Write 42 into /app/answer.txt.\n",
        "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n",
        "solution/solve.sh": "#!/bin/bash\nls /tests/* 2>/dev/null && exit 1\necho 42 > /app/answer.txt\n",
        "tests/test.sh": "#!/bin/bash\ngrep -qx 42 /app/answer.txt && echo 1 > /logs/verifier/reward.txt ||"
        " echo 0 > /logs/verifier/reward.txt\n",
    }.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


def _run(task: Path, sandbox: str, agent: str, cache: Path, engine: str) -> dict[str, object]:
    jobs = task.parent / f"jobs-{agent}"
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        "HARBOR_TELEMETRY": "0",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "SEATRIAL_CACHE": str(cache),
        **({"DOCKER_HOST": engine} if engine else {}),
    }
    command = [str(HARBOR), "run", "-p", str(task), "-a", agent, "-e", sandbox, "-o", str(jobs), "-n", "1", "-y", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=task.parent, timeout=280)
    results = list(jobs.glob("*/*/result.json"))
    assert done.returncode == 0 and len(results) == 1, done.stdout + done.stderr
    found = json.loads(results[0].read_text())
    assert found["exception_info"] is None, found["exception_info"]
    rewards: dict[str, object] = found["verifier_result"]["rewards"]
    return rewards


@pytest.mark.engine
@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1), ("nop", 0)])
def test_docker(task: Path, image_cache: Path, container_engine: Engine, agent: str, reward: int) -> None:
    sandbox = "seatrial.sandboxes.docker:DockerEnvironment"
    assert _run(task, sandbox, agent, image_cache, container_engine.host) == {"reward": reward}


@pytest.mark.sandbox
@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1), ("nop", 0)])
def test_oci(task: Path, image_cache: Path, agent: str, reward: int) -> None:
    sandbox = "seatrial.sandboxes.oci:OciEnvironment"
    assert _run(task, sandbox, agent, image_cache, "") == {"reward": reward}
