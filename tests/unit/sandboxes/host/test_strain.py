"""The counters of a sandbox's cgroups, in both versions."""

from __future__ import annotations

from pathlib import Path

from seatrial.sandboxes.host.strain import Strain, strain_of


def test_version_2(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("usage_usec 9000000\nnr_throttled 3\nthrottled_usec 1500000\n")
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n")
    assert strain_of(tmp_path, tmp_path) == Strain(throttled_sec=1.5, memory_pressure=7)


def test_version_1(tmp_path: Path) -> None:
    cpu, memory = tmp_path / "cpu", tmp_path / "memory"
    for place in (cpu, memory):
        place.mkdir()
    (cpu / "cpu.stat").write_text("nr_periods 10\nnr_throttled 4\nthrottled_time 250000000\n")
    (memory / "memory.failcnt").write_text("2\n")
    (memory / "memory.memsw.failcnt").write_text("10\n")
    assert strain_of(cpu, memory) == Strain(throttled_sec=0.25, memory_pressure=12)


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    assert strain_of(tmp_path, tmp_path) == Strain() and strain_of(None, None) == Strain()
