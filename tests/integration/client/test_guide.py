"""The code of the guide, run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.command_line import ROOT

_BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/how-to/use-the-client.md").read_text(), re.DOTALL)
_PRINTED = (
    "2 trials\ncompleted 2 passed\nanswer-file passed 1.0",
    "job.created None\n",
    "[1, 1, 1]\n",
    "agent There is no",
)


def test_the_guide_works(address: str) -> None:
    """In its order, as a reader would."""
    environment = {**os.environ, "SEATRIAL_SERVER": address}
    assert len(_BLOCKS) == len(_PRINTED)
    for block, printed in zip(_BLOCKS, _PRINTED, strict=True):
        done = subprocess.run(
            [sys.executable, "-c", block], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert printed in done.stdout


@pytest.mark.parametrize("block", _BLOCKS, ids=range(len(_BLOCKS)))
def test_without_a_service_it_says_so(block: str) -> None:
    environment = {**os.environ, "SEATRIAL_SERVER": "http://127.0.0.1:1"}
    done = subprocess.run([sys.executable, "-c", block], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 or "Later it may" in done.stdout
    assert "ServiceUnavailable" in done.stderr or "Later it may" in done.stdout
