"""A person reads a hostile trial in a terminal: nothing of it reaches the terminal but signs to look at."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.domain.terminal_text import harmless
from tests.attacks.result_reader.hostile_home import HOSTILE, RECORDING
from tests.command_line import CommandLine

COMMANDS = {
    "trial show": ("trial", "show", "1"),
    "trial logs": ("trial", "logs", "1"),
    "trial logs, in full": ("trial", "logs", "1", "--raw"),
    "trial files": ("trial", "files", "1"),
    "job list": ("job", "list"),
    "job show": ("job", "show", "1"),
    "report": ("report", "1", "--tests"),
    "compare": ("compare", "1", "3"),
    "task list": ("task", "list"),
    "task show": ("task", "show", f"sha256:{1:064x}"),
    "trial show, as JSON": ("trial", "show", "1", "--json"),
    "export": ("export", "1"),
    "an error": ("task", "show", "".join(HOSTILE.values())),
}
TELLING = ("trial show", "trial logs", "job list", "report", "an error")
"""Each starts a process of its own. The others print by the same function; a unit test checks that all do."""
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060-\u2069\ufeff]")
OURS = re.compile(r"\x1b\[[0-9;]*m")
"""Colours that Rich writes by itself on a terminal; those of a trial are shown as text."""


def on_a_terminal(cli: CommandLine, *arguments: str) -> str:
    """What the terminal is given, without the carriage returns that it adds to lines itself."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [cli.program, *arguments],
        cwd=cli.directory,
        env={**cli._environment({}), "TERM": "xterm-256color"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 65_536):
                said += piece
        except OSError:  # how a terminal says that its other end is closed
            pass
    os.close(ours)
    return said.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "command", [name if name in TELLING else pytest.param(name, marks=pytest.mark.long) for name in COMMANDS]
)
def test_nothing_of_a_trial_steers_the_terminal(reader: CommandLine, command: str) -> None:
    said = on_a_terminal(reader, *COMMANDS[command])
    assert said.strip(), "the command said nothing at all"
    assert "Traceback" not in said
    assert not STEERING.search(OURS.sub("", said)), repr(said[:500])


def test_a_file_of_a_trial_is_shown_on_a_terminal_and_kept_as_it_is_elsewhere(reader: CommandLine) -> None:
    said = on_a_terminal(reader, "trial", "files", "1", "agent/agent.log")
    assert "begin" in said and not STEERING.search(said)
    copied = Path(reader.directory, "copied.log")
    with copied.open("wb") as sink:
        command = [reader.program, "trial", "files", "1", "agent/agent.log"]
        subprocess.run(command, stdout=sink, check=True, env=reader._environment({}), cwd=reader.directory)
    assert b"\x1b]52;c;" in copied.read_bytes() and copied.read_bytes().endswith(b"\x9b31m\xff\n")


def test_a_recording_is_text_on_a_terminal_and_a_recording_elsewhere(reader: CommandLine) -> None:
    """Frames without end, depth and escape sequences; nothing reads it but the page, which has its own rules."""
    said = on_a_terminal(reader, "trial", "files", "1", "agent/screen.cast")
    assert "no event at all" in said and "Traceback" not in said and not STEERING.search(said)
    reader("trial", "files", "1", "-o", reader.directory / "copied")
    assert (reader.directory / "copied" / "agent" / "screen.cast").read_bytes() == RECORDING


@pytest.mark.parametrize("what", HOSTILE)
def test_each_is_shown_by_its_number(what: str) -> None:
    shown = harmless(HOSTILE[what])
    assert not STEERING.search(shown) and "\\" in shown


def test_words_of_every_language_are_shown_as_they_are(reader: CommandLine) -> None:
    for words in ("plain\n\ttext", "é ü ß", "漢字\u3000かな", "עברית", "🎉", "a\u00a0b", "100 % ± 4 – ok…"):
        assert harmless(words) == words
    assert "é\n" in on_a_terminal(reader, "trial", "logs", "3", "--raw")


@given(st.text())
def test_no_text_steers_a_terminal(text: str) -> None:
    shown = harmless(text)
    assert not STEERING.search(shown)
    shown.encode()
