"""Workers are kept alive, told to leave, and never outlive whoever started them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.system.processes import start_time
from seatrial.worker_supervisor import WorkerSupervisor
from tests.waiting import LIMIT_SEC, eventually, until

DIARY = """
import os, sys, signal, time
diary = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def told(*_):
    os.write(diary, b'told\\n')  # a signal may come in the middle of a print
    if sys.argv[2] != 'stubborn':
        sys.exit(0)
signal.signal(signal.SIGTERM, told)
os.write(diary, f'born {os.getpid()}\\n'.encode())
if sys.argv[2] == 'leaves':
    sys.exit(10)
while sys.argv[2] != 'dies':
    time.sleep(0.02)
"""


def command(diary: Path, how: str) -> list[str]:
    return [sys.executable, "-c", DIARY, str(diary), how]


def lines(diary: Path, word: str) -> list[str]:
    return [line for line in diary.read_text().splitlines() if line.startswith(word)] if diary.exists() else []


async def workers(supervisor: WorkerSupervisor, diary: Path, born: int, alive: int) -> list[int]:
    """The running workers, once the supervisor lists them. A worker may write into the diary before it is listed."""
    await eventually(lambda: len(lines(diary, "born")) == born, f"worker {born}")
    await eventually(lambda: len(supervisor.pids) == alive, f"{alive} workers listed")
    return supervisor.pids


async def test_a_killed_worker_is_replaced(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    async with WorkerSupervisor(command(diary, "lives"), 2, first_pause_sec=0.05) as supervisor:
        killed, kept = await workers(supervisor, diary, born=2, alive=2)
        os.kill(killed, signal.SIGKILL)
        after = await workers(supervisor, diary, born=3, alive=2)
        assert kept in after and killed not in after
    assert all(start_time(int(line.split()[1])) is None for line in lines(diary, "born")), "gone with the supervisor"


async def test_one_that_left_by_itself_is_not_replaced(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    async with (
        WorkerSupervisor(command(diary, "leaves"), 2, first_pause_sec=0.01) as supervisor,
        asyncio.timeout(LIMIT_SEC),
    ):
        await supervisor.gone()
        assert len(lines(diary, "born")) == 2


async def test_one_that_dies_at_its_start_is_replaced_less_and_less_often(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    diary = tmp_path / "diary"
    async with WorkerSupervisor(command(diary, "dies"), 1, first_pause_sec=0.01):
        await eventually(lambda: len(lines(diary, "born")) >= 4, "four workers, one after another")
        said = [message.rpartition("another one starts in ")[2] for message in caplog.messages]
        assert said[:3] == ["0.01 s.", "0.02 s.", "0.04 s."]


async def test_one_that_cannot_be_started_takes_nobody_along(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    diary, program = tmp_path / "diary", tmp_path / "worker"
    program.symlink_to(sys.executable)
    async with WorkerSupervisor([str(program), *command(diary, "lives")[1:]], 2, first_pause_sec=0.01) as supervisor:
        stays, dies = await workers(supervisor, diary, born=2, alive=2)
        gone = asyncio.create_task(supervisor.gone())
        program.unlink()  # an upgrade, say
        os.kill(dies, signal.SIGKILL)
        await eventually(lambda: any("could not be kept" in said for said in caplog.messages), "the log says it")
        assert supervisor.pids == [stays] and not gone.done(), "whoever waits for the supervisor would end the others"
        program.symlink_to(sys.executable)
        await eventually(lambda: len(lines(diary, "born")) == 3, "another worker")
        supervisor.leave()
        await asyncio.wait_for(gone, LIMIT_SEC)


async def test_told_to_leave_they_leave_and_are_not_replaced(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    async with WorkerSupervisor(command(diary, "lives"), 2, first_pause_sec=0.05) as supervisor:
        await eventually(lambda: len(lines(diary, "born")) == 2, "two workers")
        supervisor.leave()
        await asyncio.wait_for(supervisor.gone(), LIMIT_SEC)
    assert (len(lines(diary, "born")), len(lines(diary, "told"))) == (2, 2)


async def test_one_that_does_not_leave_is_told_again_and_ended_at_last(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    async with WorkerSupervisor(command(diary, "stubborn"), 1) as supervisor:
        await eventually(lambda: len(lines(diary, "born")) == 1, "a worker")
        for count in (1, 2):
            supervisor.leave()
            await eventually(lambda count=count: len(lines(diary, "told")) == count, "it was told")  # type: ignore[misc]
        [pid] = supervisor.pids
    assert start_time(pid) is None


def test_a_worker_dies_with_whoever_started_it(tmp_path: Path) -> None:
    """The parent is killed, so that nothing of it could clean up."""
    child = "import os, sys, time; from seatrial.system.processes import die_with\nassert die_with(int(sys.argv[1])); "
    child += "print(os.getpid(), flush=True); time.sleep(60)"
    parent = "import subprocess, sys, os, time\n"
    parent += f"subprocess.Popen([sys.executable, '-c', {child!r}, str(os.getpid())], start_new_session=True)\n"
    parent += "time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        pid = int(started.stdout.readline())
        assert start_time(pid) is not None
        started.kill()
        started.wait()
        until(lambda: start_time(pid) is None, "the worker's end")


def test_one_whose_parent_is_gone_already_is_told_so() -> None:
    code = "from seatrial.system.processes import die_with; import os; print(die_with(os.getppid()), die_with(1 << 22))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
