"""The README of the package: its ``sh`` blocks, run as they are printed, in a copy of what a checkout has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.verifiers.generations import PACKAGE, UV

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(600)]

CHECKOUT = ("src", "environments", "samples", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE")


@pytest.mark.long  # it installs everything twice; the commands themselves run in test_generation_*.py
def test_the_printed_commands_run(tmp_path: Path, image_cache: Path) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", (PACKAGE / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for name in CHECKOUT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    strange = re.compile(r"SEATRIAL_.*|.*_API_KEY|PYTHONDONTWRITEBYTECODE|VIRTUAL_ENV|TB_TASKS_DIR")
    known = {name: value for name, value in os.environ.items() if not strange.fullmatch(name)}
    known |= {
        "PATH": f"{UV.parent}:{known.get('PATH', '')}",
        "UV_PYTHON": sys.executable,
        "SEATRIAL_HOME": str(tmp_path / "home"),
        "SEATRIAL_CACHE": str(image_cache),
        "COLUMNS": "160",
    }
    script = "\n".join(["set -e", "trap 'kill $(jobs -p) 2>/dev/null || :' EXIT", *blocks])
    with (tmp_path / "output").open("wb") as output:
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=known,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
        )
    printed = (tmp_path / "output").read_text(errors="replace")
    assert done.returncode == 0, printed[-5000:]
    assert printed.count("reward=1.00") == 2, printed[-5000:]
    assert "reward: avg - 1.000" in printed, printed[-5000:]
