"""Shell scripts are sound by ShellCheck, and those of the images do what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import ROOT

SCRIPTS = [
    path
    for pattern in ("scripts/*.sh", "deploy/**/*.sh", "tests/deploy/**/*.sh")
    for path in sorted(ROOT.glob(pattern))
]
SHELLCHECK = Path(sys.executable).with_name("shellcheck")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_is_sound(path: Path) -> None:
    subprocess.run([SHELLCHECK, "--severity=warning", path], check=True)


def start(root: Path) -> str:
    command = ["sh", ROOT / "scripts" / "container-start.sh", "echo", "started"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env={"SEATRIAL_CGROUP_ROOT": str(root), "PATH": "/usr/bin:/bin"},
    )
    return done.stdout


def test_processes_move_aside_in_a_group_of_version_two(tmp_path: Path) -> None:
    (tmp_path / "cgroup.type").write_text("domain\n")
    (tmp_path / "cgroup.procs").write_text("1\n17\n")
    assert start(tmp_path) == "started\n"
    assert (tmp_path / "start" / "cgroup.procs").read_text() == "17\n"  # a file keeps the last; the kernel takes each


@pytest.mark.parametrize("root", ["a machine's own", "version one"])
def test_nothing_moves_elsewhere(root: str, tmp_path: Path) -> None:
    if root == "a machine's own":
        (tmp_path / "cgroup.procs").write_text("1\n")
    assert start(tmp_path) == "started\n"
    assert not (tmp_path / "start").exists()


def test_secrets_of_a_build_become_variables_only_if_they_are_given() -> None:
    command = [
        "sh",
        ROOT / "scripts" / "with-secrets.sh",
        "sh",
        "-c",
        "echo ${SSL_CERT_FILE:-none} ${PIP_INDEX_URL:-none}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"})
    assert done.stdout == "none none\n"
