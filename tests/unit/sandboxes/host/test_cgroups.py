"""Cgroup layouts of other machines, in a directory that stands for ``/sys/fs/cgroup``."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.sandboxes.host.cgroups import Cgroups, Limits

LIMITS = Limits(cpus=1.5, memory_mb=64, pids=32, storage_mb=100)


def _line(kind: str, place: Path, options: str) -> str:
    return f"30 20 0:26 / {place} rw,nosuid - {kind} cgroup rw,{options}\n"


def _unified(root: Path, controllers: str) -> Path:
    root.mkdir()
    (root / "cgroup.controllers").write_text(controllers)
    (root / "mountinfo").write_text(_line("cgroup2", root, "nsdelegate"))
    return root / "mountinfo"


@pytest.fixture
def legacy(tmp_path: Path) -> Path:
    """Separate hierarchies, and version 2 beside them without any controller."""
    text = ""
    for name in ("memory", "pids", "cpu,cpuacct", "devices", "freezer"):
        (tmp_path / name).mkdir()
        text += _line("cgroup", tmp_path / name, name)
    (tmp_path / "unified").mkdir()
    (tmp_path / "mountinfo").write_text(text + _line("cgroup2", tmp_path / "unified", "nsdelegate"))
    return tmp_path


def test_version_2(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    cgroups = Cgroups.found(_unified(root, "cpuset cpu io memory pids"))
    assert (cgroups.problem, cgroups.description) == ("", "cgroup v2: memory, pids, cpu")
    assert not cgroups.filters_devices
    own = cgroups.of("st-1")
    own.make(LIMITS)
    place = root / "seatrial" / "st-1"
    assert (place / "memory.max").read_text() == str(64 << 20)
    assert (place / "memory.swap.max").read_text() == "0"
    assert (place / "cpu.max").read_text() == "150000 100000"
    for view in ("agent", "grading"):
        assert (place / view / "pids.max").read_text() == "32"
    for above in (root, root / "seatrial", place):
        assert (above / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    assert own.command_prefix("agent", "/bin/busybox")[-2:] == [str(place / "agent" / "cgroup.procs"), "--"]
    assert own.visible == {"": place}
    (place / "memory.events").write_text("low 0\noom 3\noom_kill 2\noom_group_kill 0\n")
    (place / "agent" / "cgroup.procs").write_text("11\n12\n")
    assert own.memory_kills == 2 and own.processes() == {11, 12} == own.processes("agent")


def test_version_1_and_hybrid(legacy: Path) -> None:
    cgroups = Cgroups.found(legacy / "mountinfo")
    assert (cgroups.problem, cgroups.description) == ("", "cgroup v1: memory, pids, cpu, devices")
    assert cgroups.filters_devices
    own = cgroups.of("st-1")
    own.make(LIMITS)
    assert (legacy / "memory/seatrial/st-1/memory.limit_in_bytes").read_text() == str(64 << 20)
    assert (legacy / "cpu,cpuacct/seatrial/st-1/cpu.cfs_quota_us").read_text() == "150000"
    assert (legacy / "pids/seatrial/st-1/agent/pids.max").read_text() == "32"
    assert (legacy / "devices/seatrial/st-1/devices.deny").read_text() == "a"
    doors = own.command_prefix("grading", "/bin/busybox")
    assert str(legacy / "pids/seatrial/st-1/grading/tasks") in doors
    assert str(legacy / "memory/seatrial/st-1/tasks") in doors
    (legacy / "memory/seatrial/st-1/memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    assert own.memory_kills == 1


def test_controller_that_is_not_offered_is_told(tmp_path: Path) -> None:
    cgroups = Cgroups.found(_unified(tmp_path / "cgroup", "cpu pids"))
    assert "no memory controller" in cgroups.problem
    own = cgroups.of("st-1")
    assert not own.enforced and own.command_prefix("agent", "/bin/busybox") == []
    assert own.memory_kills == 0 and own.processes() == set() and own.remove()


def test_no_cgroups_are_told(tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_text("30 20 0:26 / /tmp rw - tmpfs tmpfs rw\n")
    assert Cgroups.found(tmp_path / "mountinfo").problem == "no cgroup hierarchy is mounted"


def test_hierarchy_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    (tmp_path / "mountinfo").write_text(_line("cgroup2", gone, "x"))
    assert f"{gone} cannot be written" in Cgroups.found(tmp_path / "mountinfo").problem
