"""The parts of a gVisor sandbox that need none: its two programs, what it is told, and what it says."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from seatrial.sandboxes.oci.gvisor import inside
from seatrial.sandboxes.oci.gvisor.programs import tools
from seatrial.sandboxes.oci.gvisor.runsc import told
from seatrial.sandboxes.oci.gvisor.spec import BUSYBOX, contained
from tests.waiting import eventually, until


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    busybox = shutil.which("busybox")
    assert busybox is not None
    return tools(tmp_path, Path(busybox))


def test_enter_becomes_the_command(programs: Path) -> None:
    command = [programs / "enter", "/bin/sh", "sh", "-c", 'echo "$0 $1 $KEPT"; exit 42', "name", "argument"]
    ended = subprocess.run(command, env={"KEPT": "kept"}, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (42, "name argument kept\n")


@pytest.mark.parametrize(("program", "status"), [("/no/such/program", 127), ("/etc/passwd", 126)])
def test_enter_says_what_a_shell_would(programs: Path, program: str, status: int) -> None:
    assert subprocess.run([programs / "enter", program, "x"], check=False).returncode == status


def test_commands_make_no_namespaces(programs: Path) -> None:
    """And do make processes and threads, and everything else."""
    show = ["sh", "-c", "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status; unshare --user true; (echo forked)"]
    ended = subprocess.run([programs / "enter", "/bin/sh", *show], capture_output=True, text=True, check=False)
    assert ended.stdout.split() == ["NoNewPrivs:", "1", "Seccomp:", "2", "forked"]
    assert "Operation not permitted" in ended.stderr


async def test_init_waits_and_reaps(programs: Path) -> None:
    first = subprocess.Popen([programs / "init"])
    try:

        def ignores_children() -> bool:
            status = Path(f"/proc/{first.pid}/status").read_text()
            ignored = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
            return bool(int(ignored, 16) >> (signal.SIGCHLD - 1) & 1)

        await eventually(ignores_children, "it ignores the ends of children")
        assert first.poll() is None
    finally:
        first.kill()
        first.wait()


def test_tools_are_mended(tmp_path: Path) -> None:
    busybox = shutil.which("busybox")
    assert busybox is not None
    (tmp_path / "gvisor").mkdir()
    (tmp_path / "gvisor" / "enter").write_text("something else")
    assert (tools(tmp_path, Path(busybox)) / "enter").read_bytes().startswith(b"\x7fELF")
    assert os.access(tmp_path / "gvisor" / "busybox", os.X_OK)


def test_killing_takes_the_family_and_nobody_else(tmp_path: Path) -> None:
    """The script of the grading container, on processes of this machine."""
    busybox = shutil.which("busybox")
    assert busybox is not None
    family = f"setsid sleep 600 & sleep 600 & echo $$ > {tmp_path}/leader; wait"
    doomed = subprocess.Popen(["sh", "-c", family], start_new_session=True)
    spared = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        until(lambda: (tmp_path / "leader").exists() and len(_children(doomed.pid)) == 2, "the family started")
        children = _children(doomed.pid)
        script = [busybox, *inside.kill_family(doomed.pid)[1:]]
        assert subprocess.run(script, check=False).returncode == 0
        assert doomed.wait() == -signal.SIGKILL
        until(lambda: not any(_lives(child) for child in children), "the whole family is gone")
        assert spared.poll() is None
    finally:
        spared.kill()
        spared.wait()


def test_the_agent_joins_the_grading_container() -> None:
    spec = {
        "process": {"capabilities": {"bounding": ["CAP_KILL"]}, "args": ["x"]},
        "mounts": [{"destination": "/proc"}, {"destination": BUSYBOX}],
        "linux": {"seccomp": {}, "namespaces": [{"type": "pid"}, {"type": "network", "path": "/n"}]},
        "annotations": {"run.oci.seccomp": "x"},
    }
    made = [contained(spec, sandbox="g", first=first, tools=Path("/t"), pids=7) for first in (True, False)]
    assert [entry["annotations"].get("io.kubernetes.cri.sandbox-id") for entry in made] == [None, "g"]
    networks = [[each for each in entry["linux"]["namespaces"] if each["type"] == "network"] for entry in made]
    assert networks == [[{"type": "network", "path": "/n"}], []]
    for entry in made:
        assert "seccomp" not in entry["linux"]
        assert "echo 7 > /sys/fs/cgroup/pids/pids.max" in entry["process"]["args"][-1]


def test_log_is_told_in_words() -> None:
    assert told('{"msg":"one: \\"a\\"","level":"error"}{"msg":"two","level":"error"}') == 'one: "a"; two'
    assert told("plain words") == "plain words"


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
