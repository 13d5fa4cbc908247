"""With ``CI=true`` a skip is a failure; without it, it is a skip. Expected failures are neither."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SKIPPED = "import pytest\n\ndef test_one():\n    pytest.skip('no engine')\n"
WHOLE_MODULE = "import pytest\n\npytest.skip('no engine', allow_module_level=True)\n"
EXPECTED = "import pytest\n\n@pytest.mark.xfail\ndef test_one():\n    assert False\n"


def status(content: str, folder: Path, ci: str) -> int:
    (folder / "test_it.py").write_text(content)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.skips", "-p", "no:cacheprovider", "-c", os.devnull]
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, "test_it.py"], cwd=folder, env=environment, capture_output=True, check=False)
    return done.returncode


@pytest.mark.parametrize("content", [SKIPPED, WHOLE_MODULE], ids=["test", "module"])
def test_a_skip_fails_only_in_ci(content: str, tmp_path: Path) -> None:
    assert status(content, tmp_path, "true") in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    assert status(content, tmp_path, "") in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def test_an_expected_failure_is_none(tmp_path: Path) -> None:
    assert status(EXPECTED, tmp_path, "true") == pytest.ExitCode.OK
