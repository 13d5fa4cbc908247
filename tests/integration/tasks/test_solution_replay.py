"""Scripts made from ``solution.yaml``, run for real in a terminal and, where that is enough, without one."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.adapters.task_problems import Problems
from seatrial.adapters.terminalbench1.solution import read_solution, replay_script


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment whose tmux has a server of its own, which ends with the test."""
    folder = Path("/tmp") / f"replay-{uuid.uuid4().hex[:8]}"  # a socket's path must be short
    folder.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMUX_TMPDIR": str(folder), "LC_ALL": "C.UTF-8"}
    yield environment
    subprocess.run(["tmux", "kill-server"], env=environment, capture_output=True, check=False)
    shutil.rmtree(folder)


@pytest.fixture
def without_tmux(tmp_path: Path) -> dict[str, str]:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sleep", "cat", "timeout"):
        (programs / name).symlink_to(str(shutil.which(name)))
    return {"PATH": str(programs), "HOME": str(tmp_path)}


def play(place: Path, entries: list[dict[str, Any]], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    (place / "solution.yaml").write_text(yaml.safe_dump(entries))
    problems = Problems()
    script = replay_script(read_solution(place, problems))
    assert problems.all == ()
    (place / "solve.sh").write_text(script)
    command = ["bash", str(place / "solve.sh")]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=300, check=False)


STATE = [
    {"command": "mkdir -p sub && cd sub", "block": True},
    {"command": "export GREETING='hello; world'", "block": False, "min_timeout_sec": 0.1},
    # The shell must be waiting in `read` before it is answered; the format has no other means than time.
    {"command": "read -r answer", "block": False, "min_timeout_sec": 3},
    {"command": "forty two", "block": False, "min_timeout_sec": 0.2},
    {"command": 'echo "$GREETING $answer" > out.txt', "block": True},
]


def test_shell_state_and_answers_last_in_a_terminal(tmp_path: Path, terminal: dict[str, str]) -> None:
    done = play(tmp_path, STATE, terminal)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sub" / "out.txt").read_text() == "hello; world forty two\n"


def test_shell_state_and_answers_last_without_one(tmp_path: Path, without_tmux: dict[str, str]) -> None:
    (tmp_path / "sub").mkdir()
    done = play(tmp_path, [{"command": "cd sub", "block": True}, *STATE[1:]], without_tmux)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "sub" / "out.txt").read_text() == "hello; world forty two\n"


def test_keys_reach_a_program_that_asks(tmp_path: Path, terminal: dict[str, str]) -> None:
    entries = [
        {"command": "cat > typed.txt", "min_timeout_sec": 3},
        {"command": "one linf", "append_enter": False, "min_timeout_sec": 0.1},
        {"command": "BSpace", "append_enter": False, "min_timeout_sec": 0.1},
        {"command": "e;", "min_timeout_sec": 0.2},
        {"command": "C-d", "append_enter": False, "min_timeout_sec": 0.3},
        {"command": "echo done >> typed.txt", "block": True},
    ]
    done = play(tmp_path, entries, terminal)
    assert (tmp_path / "typed.txt").read_text() == "one line;\ndone\n", done.stdout


def test_keys_without_a_terminal_are_refused_in_one_sentence(tmp_path: Path, without_tmux: dict[str, str]) -> None:
    done = play(tmp_path, [{"command": "C-c", "append_enter": False}], without_tmux)
    assert done.returncode == 1
    assert "no tmux" in done.stderr


@pytest.mark.parametrize("kind", ["terminal", "without_tmux"])
def test_an_entry_that_does_not_end_is_named(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    # The script waits for it in the end.
    entries = [
        {"command": "sleep 10", "block": True, "max_timeout_sec": 0.5},
        {"command": "true > late", "block": True},
    ]
    done = play(tmp_path, entries, request.getfixturevalue(kind))
    assert done.returncode == 1
    assert "Entry 1 did not end within 0.5 seconds: sleep 10" in done.stderr
    assert not (tmp_path / "late").exists()


def test_what_still_runs_is_waited_for(tmp_path: Path, terminal: dict[str, str]) -> None:
    play(tmp_path, [{"command": "sleep 1.5 && echo late > out.txt", "block": False}], terminal)
    assert (tmp_path / "out.txt").read_text() == "late\n"


def test_problems_have_their_line(tmp_path: Path) -> None:
    (tmp_path / "solution.yaml").write_text("- command: ls\n- command: ls\n  block: perhaps\n")
    problems = Problems()
    assert read_solution(tmp_path, problems) == ()
    assert [(found.file, found.line) for found in problems.all] == [("solution.yaml", 3)]
