"""Workers that leave because they are idle, and the numbers that autoscalers follow, on the command line."""

from __future__ import annotations

from pathlib import Path

from tests.command_line import CommandLine
from tests.task_files import write_task


def test_idle_processes_leave_and_the_last_one_ends_the_machine(cli: CommandLine, tmp_path: Path) -> None:
    diary, program = tmp_path / "diary", tmp_path / "end-this-machine"
    program.write_text(f'#!/bin/sh\necho "ended $*" >> {diary}\n')
    program.chmod(0o755)
    own = {"SEATRIAL_CACHE": str(tmp_path / "cache"), "SEATRIAL_ON_LEAVE": f"{program} 'for good'"}
    told = ("--processes", "2", "--leave-when-idle", "1s", "--minimum-workers", "0")
    cli.start("worker", "-n", "1", *told, **own).wait()
    assert diary.read_text() == "ended for good\n", "once"


def test_a_time_that_nobody_can_read_is_refused(cli: CommandLine) -> None:
    assert "Write 90s, 10m or 2h." in cli("worker", "--leave-when-idle", "soon", status=2).err


def test_the_fleet_is_told_in_machines(cli: CommandLine, tmp_path: Path) -> None:
    machine = {"SEATRIAL_MACHINE_MEMORY_MB": "20480", "SEATRIAL_MACHINE_CPUS": "1", "SEATRIAL_CPU_OVERCOMMIT": "4"}
    assert cli.json("fleet", **machine)["desired_workers"] == 0
    cli("run", write_task(tmp_path, "wait"), "-k", "9", "--queue-only")
    state = cli.json("fleet", **machine)
    assert (state["queued"], state["work_units"], state["desired_workers"]) == (9, 2.25, 3)
    assert "9 queued and 0 running trials fill 2.25 machines" in cli("fleet", **machine).out
