"""Notes of how worker processes ended, and the kernel's count of kills for want of memory."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from seatrial.domain.fleet.worker_death import Exit
from seatrial.worker_exits import ExitNotes, count_memory_kills, own_cgroup, worker_of
from seatrial.worker_supervisor import WorkerSupervisor
from tests.waiting import eventually


def test_a_note_is_found_by_the_name_of_its_process(tmp_path: Path) -> None:
    notes, me = ExitNotes.beside(tmp_path / "work"), worker_of(os.getpid())
    assert me is not None and notes.read(me) is None
    notes.write(me, Exit(status=-9, memory_kill=True))
    assert notes.read(me) == Exit(status=-9, memory_kill=True)
    assert [place.name for place in (tmp_path / "exits").iterdir()] == [f"{me.folder}.json"]


def test_a_broken_note_and_a_folder_that_cannot_be_written_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "exits").write_text("a file in the way")
    notes, me = ExitNotes.beside(tmp_path / "work"), worker_of(os.getpid())
    assert me is not None
    notes.write(me, Exit(status=1))
    assert notes.read(me) is None
    broken = ExitNotes.beside(tmp_path / "other" / "work")
    broken.write(me, Exit(status=1))
    (tmp_path / "other" / "exits" / f"{me.folder}.json").write_text("{")
    assert broken.read(me) is None


def test_old_notes_are_removed(tmp_path: Path) -> None:
    notes, me = ExitNotes.beside(tmp_path / "work"), worker_of(os.getpid())
    assert me is not None
    notes.write(me, Exit(status=1))
    [old] = (tmp_path / "exits").iterdir()
    os.utime(old, (0, 0))
    other = worker_of(os.getppid())
    assert other is not None
    notes.write(other, Exit(status=2))
    assert notes.read(me) is None and notes.read(other) == Exit(status=2)


@pytest.mark.parametrize(("how", "status"), [(signal.SIGKILL, -9), (signal.SIGSEGV, -11)])
async def test_a_supervisor_notes_how_its_worker_ended(tmp_path: Path, how: signal.Signals, status: int) -> None:
    notes = ExitNotes.beside(tmp_path / "work")
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    async with WorkerSupervisor(command, 1, first_pause_sec=0.01, notes=notes) as supervisor:
        await eventually(lambda: bool(supervisor.pids), "a worker")
        worker = worker_of(supervisor.pids[0])
        assert worker is not None
        await asyncio.to_thread(os.kill, worker.process.pid, how)
        await eventually(lambda: notes.read(worker) is not None, "its note")
    assert notes.read(worker) == Exit(status=status)


@pytest.mark.parametrize(
    ("process", "counter", "content"),
    [
        ("4:memory:/a\n0::/\n", "memory/a/memory.oom_control", "under_oom 0\noom_kill 3\n"),
        ("0::/a\n", "a/memory.events.local", "max 9\noom_kill 3\n"),
        ("0::/\n", "memory.events", "oom_kill 3\n"),
        ("4:memory:/elsewhere\n", "memory/memory.oom_control", "oom_kill 3\n"),
    ],
)
def test_the_count_of_either_version_is_read(tmp_path: Path, process: str, counter: str, content: str) -> None:
    (tmp_path / "cgroup").write_text(process)
    (tmp_path / counter).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / counter).write_text(content)
    assert count_memory_kills(own_cgroup(tmp_path, tmp_path / "cgroup")) == 3


def test_without_a_counter_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("0::/a\n")
    assert own_cgroup(tmp_path, tmp_path / "cgroup") is None
    assert own_cgroup(tmp_path, tmp_path / "missing") is None
