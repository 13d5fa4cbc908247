"""Root in a container without privileges has no mounts of its own: the probe says so, instead of waiting for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.sandbox

_PROBE = """
import asyncio, sys
from pathlib import Path
from seatrial.sandboxes.oci.probe import probe
from seatrial.sandboxes.options import SandboxOptions
for finding in asyncio.run(probe(SandboxOptions(cache=Path(sys.argv[1])))):
    print(finding.name, finding.ok, finding.fix)
"""


def findings(cache: Path, *prefix: str) -> list[str]:
    command = [*prefix, sys.executable, "-c", _PROBE, str(cache)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.splitlines()


def test_a_process_that_may_not_mount_is_told_what_to_do(tmp_path: Path) -> None:
    without = findings(tmp_path, "setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    assert [line.split()[:2] for line in without] == [["root", "True"], ["mounts", "False"]]
    assert "--privileged" in without[-1] and "--sandbox docker" in without[-1]


def test_a_process_that_may_is_tried_further(tmp_path: Path) -> None:
    found = findings(tmp_path)
    assert "mounts True" in " ".join(found)
    assert len(found) > 5
