"""Threads with their own mounts are few, and a process has them once."""

from __future__ import annotations

from pathlib import Path

from seatrial.sandboxes.host.tools import HostTools
from seatrial.sandboxes.oci.machine import Machine


def test_sandboxes_of_one_process_share_them(tmp_path: Path) -> None:
    shared = HostTools.shared(tmp_path)
    for machine in (Machine.shared(tmp_path), Machine.shared(tmp_path, "runc")):
        assert machine.mounts is shared.mounts and machine.notices is shared.notices
    assert HostTools.shared(tmp_path / "other").mounts is not shared.mounts
