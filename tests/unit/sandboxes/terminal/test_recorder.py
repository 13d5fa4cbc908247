"""The recorder of terminals, run as the kit runs it."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

from seatrial.sandboxes.terminal import recorder
from tests.waiting import LIMIT_SEC


def test_keys_typed_before_it_starts_are_not_lost(tmp_path: Path) -> None:
    """On a busy machine an agent types its first command before the recorder is up."""
    typed, tell = os.pipe()
    cast = tmp_path / "recording.cast"
    command = ["rec", "-q", "-c", "read -r first; read -r second; echo got $first and $second", str(cast)]
    pid, terminal = os.forkpty()
    if pid == 0:
        os.read(typed, 1)
        os.execv(sys.executable, [sys.executable, "-I", "-S", str(recorder.__file__), *command])
    os.write(terminal, b"one\rtwo\r")
    os.write(tell, b"x")
    seen = _read_to_the_end(terminal)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    for file in (typed, tell, terminal):
        os.close(file)
    assert b"got one and two" in seen
    assert "got one and two" in cast.read_text()


def _read_to_the_end(terminal: int) -> bytes:
    seen = b""
    while select.select([terminal], [], [], LIMIT_SEC)[0]:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # the recorder has ended
            break
    return seen
