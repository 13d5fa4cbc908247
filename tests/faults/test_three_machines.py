"""Machines that are killed, cut off and added, each with a network, processes and a disk of its own.

``make faults`` runs ``python -m tests.faults.site`` with 300 trials and with real sandboxes; this is the brief part.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.waiting import until

pytestmark = [pytest.mark.sandbox, pytest.mark.postgres, pytest.mark.timeout(600)]

_SITE = [sys.executable, "-m", "tests.faults.site", "--brief", "--trials", "12", "--capacity", "2"]


def processes_of(mark: str) -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in place.read_bytes():
                found.append(int(place.parent.name))
    return found


def test_every_trial_ends_once() -> None:
    mark = f"SITE_{uuid.uuid4().hex}"
    done = subprocess.run(_SITE, cwd=ROOT, env={**os.environ, mark: "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 trials ended once each, on 4 machines" in done.stdout, done.stdout
    until(lambda: not processes_of(mark), "no process of it is left")


def test_nothing_is_left_of_a_site_that_is_killed(tmp_path: Path) -> None:
    mark, out = f"SITE_{uuid.uuid4().hex}", tmp_path / "out"
    with out.open("wb") as output:
        site = subprocess.Popen(_SITE, cwd=ROOT, env={**os.environ, mark: "1"}, stdout=output, stderr=output)
    try:
        until(lambda: "machine 3 is added" in out.read_text(), "its machines are there", 120)
        assert len(processes_of(mark)) > 6, "the site, its servers and its machines"
    finally:
        site.send_signal(signal.SIGKILL)
        site.wait(60)
    until(lambda: not processes_of(mark), "every process of it is gone")
    mounts = Path("/proc/self/mountinfo").read_text()
    assert " /srv " not in mounts, "its disks were its own"
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    assert " hub:" not in links and "cable1" not in links, "and so was its network"
