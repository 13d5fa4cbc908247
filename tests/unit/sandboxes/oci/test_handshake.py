"""How a sandbox's first process says that it is ready, and how its failure is told from its silence."""

from __future__ import annotations

import shutil
import time

from seatrial.sandboxes.oci.command import run_to_end
from seatrial.sandboxes.oci.handshake import READY, Handshake
from tests.waiting import LIMIT_SEC

SHELL = shutil.which("sh") or "/bin/sh"


def ready(script: str, patience: float = LIMIT_SEC) -> bool:
    with Handshake() as handshake:
        assert run_to_end([SHELL, "-c", script], standard=handshake.given) == ""
        handshake.let_go()
        return handshake.was_ready(patience)


def test_ready_is_heard_once_it_is_said_and_the_end_is_let_go() -> None:
    assert ready(f"echo {READY} >&2")
    assert ready(f"(echo {READY} >&2) < /dev/null > /dev/null &")
    assert ready(f"echo sh: something is odd >&2; echo {READY} >&2")


def test_process_that_ends_without_it_is_not_ready() -> None:
    assert not ready("exit 0")
    assert not ready("echo sh: out of memory >&2")
    assert not ready(f"echo {READY} >&2; echo sh: out of memory >&2")


def test_silence_is_waited_for_only_so_long() -> None:
    begun = time.monotonic()
    assert not ready("sleep 300 < /dev/null > /dev/null &", patience=0.2)
    assert time.monotonic() - begun < 200, "it did not wait for the end of the process"


def test_parts_of_the_first_process_hear_each_other() -> None:
    """One prints, the other waits for it; when the first ends without a word, the other does not wait for ever."""
    parts = f"exec 3<&0; (({{}}) 2> /dev/null & exec > /dev/null; read -r _ <&3 && echo {READY} >&2) &"
    assert ready(parts.format("sleep 0.2; echo"))
    assert not ready(parts.format("sleep 0.2"))
