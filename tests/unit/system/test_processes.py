"""One identity for a process: never taken for a later one, nor for one of another namespace, boot or machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seatrial.engine.trials.retention import dead_work_dirs
from seatrial.sandboxes.record import SandboxRecord
from seatrial.system.processes import ProcessIdentity, WorkerName, is_dead

ELSEWHERE = ["unshare", "--pid", "--fork"]
NAME = "import sys; from seatrial.system.processes import *; print(is_dead(sys.argv[1]), WorkerName.mine())"


def ask(where: list[str], about: WorkerName) -> tuple[bool, str]:
    """What a process there thinks of a worker, and its own name."""
    done = subprocess.run([*where, sys.executable, "-c", NAME, str(about)], capture_output=True, text=True, check=True)
    dead, name = done.stdout.split()
    return dead == "True", name


def changed(**changes: object) -> ProcessIdentity:
    return ProcessIdentity.mine().model_copy(update=changes)


def test_names_come_back_as_they_went() -> None:
    mine = WorkerName.mine()
    assert WorkerName.parse(str(mine)) == mine
    assert WorkerName.of_folder(mine.folder) == mine
    assert str(mine).startswith(f"{mine.host}:{os.getpid()}:")
    dashed = WorkerName("a-1:b", mine.process)
    assert WorkerName.parse(str(dashed)) == WorkerName.of_folder(dashed.folder) == dashed


def test_this_process_lives() -> None:
    assert not ProcessIdentity.mine().is_dead and ProcessIdentity.mine().lives
    assert not is_dead(str(WorkerName.mine()))


def test_a_number_that_came_again_is_another_process() -> None:
    assert changed(started=ProcessIdentity.mine().started + 1).is_dead
    assert changed(pid=2**22 - 1).is_dead


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "from seatrial.system.processes import *; print(WorkerName.mine())"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    name = child.stdout.read().strip()  # it is over, and nobody has waited for it
    deadline = time.monotonic() + 60
    while "Z" not in Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert is_dead(name)
    child.wait()
    assert is_dead(name)
    child.stdout.close()


@pytest.mark.parametrize("unknown", [{"namespace": 1}, {"boot": "0123456789ab"}, {"namespace": 0}, {"boot": ""}])
def test_what_cannot_be_seen_from_here_is_not_called_dead(unknown: dict[str, object]) -> None:
    assert not changed(pid=2**22 - 1, **unknown).is_dead
    assert changed(pid=2**22 - 1).is_dead, "the control: the same process, seen from here"


@pytest.mark.parametrize("name", ["", "w1", "host:12:345", "host:12:", "a:b:c", "host:12:1-2-xyz"])
def test_names_of_another_form_are_left_to_their_lease(name: str) -> None:
    """``host:pid:started`` is what older versions wrote: it says nothing about the namespace."""
    assert WorkerName.parse(name) is None and not is_dead(name)


@pytest.mark.parametrize("how", [["--mount-proc"], []], ids=["own-proc", "proc-of-the-host"])
@pytest.mark.skipif(os.geteuid() != 0, reason="a new PID namespace needs root")
def test_two_namespaces_with_one_host_name_know_nothing_of_each_other(how: list[str]) -> None:
    mine = WorkerName.mine()
    thinks_us_dead, other = ask([*ELSEWHERE, *how], mine)
    assert not thinks_us_dead, "it sees no process of our number, which means nothing"
    assert not is_dead(other), "nor do we see one of its number"
    found = WorkerName.parse(other)
    assert found is not None and found.host == mine.host
    assert (found.process.namespace, found.process.boot) != (mine.process.namespace, mine.process.boot)
    thinks_us_dead, sibling = ask([], mine)
    assert not thinks_us_dead and is_dead(sibling), "the control: a process of our namespace, which has ended"


def test_things_of_an_earlier_boot_are_left_behind() -> None:
    assert not changed(boot="0123456789ab").lives
    assert changed(namespace=1).lives, "of another namespace of this boot nothing is known"


def test_records_of_older_versions_are_read_and_left_to_their_lease() -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    old = (
        '{"sandbox":"s","owner":{"trial":7,"attempt":2},"created_at":"2026-01-01T00:00:00Z",'
        '"process":{"pid":%d,"started":1,"boot":"%s"}}'
    )
    of_this_boot = SandboxRecord.model_validate_json(old % (2**22 - 1, boot))
    assert of_this_boot.owner.try_number == 2
    assert of_this_boot.process.lives and not of_this_boot.process.is_dead
    assert not SandboxRecord.model_validate_json(old % (2**22 - 1, "an-earlier-boot")).process.lives


def test_work_folders_of_unseen_processes_stay_while_they_may_be_used(tmp_path: Path) -> None:
    now = time.time()
    gone = WorkerName("here", changed(pid=2**22 - 1))
    beats = WorkerName("container", changed(namespace=1))
    silent = WorkerName("container", changed(namespace=2))
    fresh = WorkerName("container", changed(namespace=3))
    folders = [gone.folder, beats.folder, silent.folder, fresh.folder, "123-456-older-version"]
    for name in folders:
        (tmp_path / name / "7-1").mkdir(parents=True)
    for name in (beats.folder, silent.folder, "123-456-older-version"):
        for place in (tmp_path / name / "7-1", tmp_path / name):
            os.utime(place, (now - 90_000, now - 90_000))
    assert [place.name for place in dead_work_dirs(tmp_path)] == [gone.folder]
    left = dead_work_dirs(tmp_path, {str(beats)}, now)
    assert {place.name for place in left} == {gone.folder, silent.folder, "123-456-older-version"}


def test_a_number_becomes_an_identity() -> None:
    assert ProcessIdentity.of(os.getpid()) == ProcessIdentity.mine()
    assert ProcessIdentity.of(2**22 - 1) is None


def test_where_a_process_is() -> None:
    mine = ProcessIdentity.mine()
    assert mine.is_on_this_machine and mine.is_of_this_namespace
    beside, before, elsewhere = changed(namespace=1), changed(namespace=0), changed(boot="abcdefabcdef")
    assert beside.is_on_this_machine and not beside.is_of_this_namespace
    assert before.is_on_this_machine and not before.is_of_this_namespace, "its namespace is unknown"
    assert not elsewhere.is_on_this_machine and not elsewhere.is_of_this_namespace
    whole = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert changed(boot=whole).is_of_this_namespace, "as older versions wrote it"
