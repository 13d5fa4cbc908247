"""The plain ``harbor`` command with our sandbox by import path, as Harbor's own users would try it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.sandboxes.oci.leftovers import Leftovers
from tests.trials import IMPORT_PATH, Workplace

pytestmark = pytest.mark.sandbox


def test_harbor_run(workplace: Workplace, leftovers: Leftovers) -> None:
    task = workplace.task("echo 42 > /app/answer", "grep -qx 42 /app/answer && echo 1 > /logs/verifier/reward.txt")
    jobs = workplace.directory / "jobs"
    command = [
        Path(sys.executable).with_name("harbor"),
        "run",
        "-p",
        task,
        "-a",
        "oracle",
        "-e",
        IMPORT_PATH,
        "-o",
        jobs,
    ]
    environment = {**os.environ, "SEATRIAL_CACHE": str(workplace.cache), "HARBOR_TELEMETRY": "0"}
    done = subprocess.run(
        command, env=environment, cwd=workplace.directory, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = [json.loads(path.read_text()) for path in jobs.glob("*/*/result.json")]
    assert result["verifier_result"]["rewards"] == {"reward": 1.0}
    assert not [record for record in leftovers.find() if record.owner.install == "stock"]
