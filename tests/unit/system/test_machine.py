"""Memory and processors of a machine and of the cgroups around this process, from files in a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seatrial.domain.fleet.pressure import MemoryReading
from seatrial.system.machine import Hardware, MemoryBrake

GB = 1 << 30


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    write(tmp_path, "proc/meminfo", f"MemTotal: {16 * GB >> 10} kB\nMemAvailable: {12 * GB >> 10} kB\n")
    write(tmp_path, "proc/pressure/memory", "some avg10=1.50 avg60=0.00\nfull avg10=0.10 avg60=0.00\n")
    return tmp_path


def write(root: Path, name: str, text: object) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(f"{text}\n")


def test_the_whole_machine(machine: Path) -> None:
    found = Hardware(machine)
    assert found.memory_mb == 16 * 1024 and found.cpus == len(os.sched_getaffinity(0)) and found.gpus == 0
    assert found.memory() == MemoryReading(total_mb=16384, available_mb=12288, stalled_percent=1.5)


def test_a_limit_of_version_2_counts_from_every_level(machine: Path) -> None:
    write(machine, "proc/self/cgroup", "0::/outer/inner")
    write(machine, "sys/fs/cgroup/outer/memory.max", 8 * GB)
    write(machine, "sys/fs/cgroup/outer/memory.current", 7 * GB)
    write(machine, "sys/fs/cgroup/outer/memory.stat", f"anon 5\ninactive_file {3 * GB}")
    write(machine, "sys/fs/cgroup/outer/memory.pressure", "some avg10=20.00 avg60=0.00")
    write(machine, "sys/fs/cgroup/outer/inner/memory.max", "max")
    write(machine, "sys/fs/cgroup/outer/inner/cpu.max", "50000 100000")
    found = Hardware(machine)
    assert found.memory_mb == 8192 and found.cpus == 0.5
    assert found.memory() == MemoryReading(total_mb=8192, available_mb=4096, stalled_percent=20.0)


def test_a_limit_of_version_1(machine: Path) -> None:
    write(machine, "proc/self/cgroup", "9:memory:/job\n8:cpu,cpuacct:/job\n0::/elsewhere")
    write(machine, "sys/fs/cgroup/memory/job/memory.limit_in_bytes", 2 * GB)
    write(machine, "sys/fs/cgroup/memory/job/memory.usage_in_bytes", 2 * GB)
    write(machine, "sys/fs/cgroup/memory/job/memory.stat", f"total_inactive_file {GB}")
    write(machine, "sys/fs/cgroup/memory/memory.limit_in_bytes", 9223372036854771712)
    write(machine, "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", 25000)
    write(machine, "sys/fs/cgroup/cpu/job/cpu.cfs_period_us", 100000)
    found = Hardware(machine)
    assert found.memory_mb == 2048 and found.cpus == 0.25
    assert found.memory() == MemoryReading(total_mb=2048, available_mb=1024, stalled_percent=1.5)


def test_no_limit_of_version_1_is_no_limit(machine: Path) -> None:
    write(machine, "proc/self/cgroup", "8:cpu:/job")
    write(machine, "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", -1)
    write(machine, "sys/fs/cgroup/cpu/job/cpu.cfs_period_us", 100000)
    assert Hardware(machine).cpus == len(os.sched_getaffinity(0))


def test_this_machine_can_be_read() -> None:
    here = Hardware()
    assert here.memory_mb > 0 and here.cpus > 0 and here.memory().total_mb > 0


def test_the_brake_reads_anew_after_a_moment() -> None:
    from seatrial.testing.memory_meter import MemoryMeter

    now = 0.0
    meter = MemoryMeter(available_percent=1)
    brake = MemoryBrake(meter, 5.0, clock=lambda: now)
    assert "nothing new starts" in brake()
    meter.available_percent = 50
    now = 0.1
    assert brake() != "" and meter.reads == 1, "a reading is used for a moment"
    now = 0.3
    assert brake() == "" and meter.reads == 2
