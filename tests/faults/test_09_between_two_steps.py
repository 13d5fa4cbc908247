"""FAULTS 9: a process killed between two steps of making or removing a sandbox; the next to look finds what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seatrial.sandboxes.oci.leftovers import find_strays, remove_strays

STEPS = """
import os, signal, sys
from pathlib import Path
from seatrial.sandboxes.options import Owner
from seatrial.sandboxes.oci.leftovers import Leftovers
from seatrial.sandboxes.record import SandboxRecord, remove_recorded

left = int(sys.argv[2])
def audit(event, arguments):
    global left
    ours = event in ("os.mkdir", "open", "os.rename") and "st-0a1b2c3d4e5f" in str(arguments[0])
    if ours or event in ("os.remove", "os.rmdir"):  # removal goes by descriptor, and names no path
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(audit)
directory = Path(sys.argv[1]) / "st-0a1b2c3d4e5f"
directory.mkdir(parents=True, mode=0o700)
SandboxRecord.new(directory.name, Owner(install="gone", trial=1, try_number=1)).write(directory)
(directory / "changes").mkdir()
(directory / "changes" / "file").write_text("x")
remove_recorded(directory)
left = 10**9
print("done")
"""


def run(place: Path, die_at: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", STEPS, str(place), str(die_at)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("step", range(1, 13))
def test_killed_at_a_step(tmp_path: Path, step: int) -> None:
    from seatrial.sandboxes.oci.leftovers import Leftovers

    done = run(tmp_path, step)
    if done.returncode == 0:
        assert "done" in done.stdout and step > 8, "the steps above are all there are"
    else:
        assert done.returncode == -signal.SIGKILL, done.stderr
    Leftovers(tmp_path).remove()
    assert remove_strays(tmp_path, time.time()) == 0, "what is fresh may be in the making"
    remove_strays(tmp_path, time.time() + 3600)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    for name in ("decoy", "st-", "ST-0a1b2c3d4e5f"):
        (tmp_path / name).mkdir()
    (tmp_path / "st-file").write_text("a file")
    (tmp_path / "st-link").symlink_to(tmp_path / "decoy")
    (tmp_path / "st-111111111111").mkdir()
    (tmp_path / "st-111111111111" / "sandbox.json").write_text("{}")  # a record that cannot be read is a record
    (tmp_path / "st-222222222222").mkdir()
    assert [place.name for place in find_strays(tmp_path, time.time() + 3600)] == ["st-222222222222"]
    os.utime(tmp_path / "st-222222222222")
    assert find_strays(tmp_path, time.time()) == []
